"""Dynamic Key Grouping: the paper's algorithms, its table 1, and the defects it must not have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.hashing import identities, identity
from skewless.schemes import Feedback
from skewless.schemes.api import TRUE_LOAD
from skewless.schemes.dynamic import DynamicKeyGrouping, thresholds
from skewless.simulate.balance import Case, balance_all
from skewless.streams.countries import COUNTRIES, HOT
from tests.naive import dynamic as naive
from tests.test_laws import send, streams

SPACES = ("baby", "teenage", "old")


@pytest.mark.parametrize(
    ("workers", "ideal", "threshold", "most"),
    [(5, 20, 24.47, 5), (10, 10, 13.16, 8), (20, 5, 7.24, 14), (50, 2, 3.41, 30), (100, 1, 2, 51)],
)
def test_table_1(workers, ideal, threshold, most):
    ours = thresholds(workers)
    assert (ours.ideal, round(ours.threshold, 2), ours.most_workers) == (ideal, threshold, most)


@settings(max_examples=60)
@given(
    keys=streams,
    workers=st.integers(2, 30),
    seed=st.integers(0, 1000),
    rate=st.floats(0.5, 20),
    expected=st.integers(10, 40),
    hysteresis=st.sampled_from([0.0, 0.5, 1.0]),
    keeps=st.sampled_from([1.0, 0.5]),
)
def test_cycles_promotion_and_widths_equal_the_literal_algorithms(
    keys, workers, seed, rate, expected, hysteresis, keeps
):
    scheme = DynamicKeyGrouping(rate=rate, keys=expected, hysteresis=hysteresis, keeps=keeps)
    plan = scheme.plan(workers, seed)
    half = keys.size // 2
    first, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:half])
    second, tally = send(scheme, plan, tally, keys[half:], half)
    routed, items = naive.trace(scheme, keys.tolist(), workers, seed)
    assert [*first.tolist(), *second.tolist()] == routed
    assert _items(tally) == items


def _items(tally):
    space = tally.space
    held = np.flatnonzero(space.table.values >= 0)
    return {
        int(space.table.keys[slot]): (
            SPACES[space.spaces[item]],
            float(space.counts[item]),
            int(space.widths[item]),
        )
        for slot, item in zip(held, space.table.values[held], strict=True)
    }


def skewed(share, count, seed=0):
    """One key with that share, the rest spread over 203 others."""
    rng = np.random.default_rng(seed)
    ranks = np.where(rng.random(count) < share, 0, rng.integers(1, 204, count))
    return identities(ranks)


@pytest.mark.parametrize("workers", [10, 50, 100])
def test_a_hot_key_widens_many_steps_a_minute_and_never_beyond_the_maximum(workers):
    scheme = DynamicKeyGrouping(hysteresis=0.5)
    plan = scheme.plan(workers, 0)
    keys = skewed(0.8, 300_000)
    out, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    hot = out[keys == identity(0)]
    assert len(set(hot[:40_000].tolist())) == 2  # nothing is old yet
    most = thresholds(workers).most_workers
    # Four minutes of messages follow: one step a minute would end at six.
    assert 6 < len(set(hot.tolist())) <= most


def test_a_key_narrows_to_two_after_the_burst():
    scheme = DynamicKeyGrouping(hysteresis=0.5, keeps=0.5)
    plan = scheme.plan(10, 0)
    keys = np.concatenate([skewed(0.8, 200_000), skewed(0.0, 200_000, 1), identities([0] * 3)])
    _, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:200_000])
    assert _items(tally)[identity(0)][2] > 4
    _, tally = send(scheme, plan, tally, keys[200_000:], 200_000)
    assert _items(tally)[identity(0)][2] == 2


def test_event_time_runs_the_cycles_when_no_rate_is_known():
    counted = DynamicKeyGrouping(rate=100)
    timed = DynamicKeyGrouping(clock="event")
    keys = skewed(0.7, 20_000)
    plan, other = counted.plan(10, 0), timed.plan(10, 0)
    by_messages, _ = send(counted, plan, counted.tally(plan, 0), keys)
    tally = timed.reserve(timed.tally(other, 0), keys.size)
    out = np.empty(keys.size, np.int32)
    seconds = 5_000 + np.arange(keys.size) * (1 / 100)
    timed.route(other, tally, keys, np.broadcast_to(np.ones(1), keys.size), seconds, out)
    # Subtracting the first time rounds differently: cycles may fall one message apart.
    assert np.mean(out != by_messages) < 0.01


def test_a_key_widened_in_one_batch_starts_wide_in_the_next():
    scheme = DynamicKeyGrouping(hysteresis=0.5)
    plan = scheme.plan(10, 0)
    reports = []
    for source in range(3):
        keys = skewed(0.8, 200_000, source)
        _, tally = send(scheme, plan, scheme.tally(plan, source), keys)
        reports.append(scheme.report(plan, tally))
    merged = scheme.merge(scheme.merge(reports[0], reports[1]), reports[2])
    following = scheme.replan(plan, merged, Feedback.none(10))
    fresh = scheme.tally(following, 0)
    space, _, width = _items(fresh)[identity(0)]
    assert space == "old"
    assert width == max(r.widths.max() for r in reports) > 4
    out, _ = send(scheme, following, fresh, skewed(0.8, 2_000, 9))
    assert len(set(out.tolist())) == 10
    assert fresh.loads == pytest.approx(merged.loads / 3 + np.bincount(out, minlength=10))


def test_memory_is_bounded_by_one_cycle_whatever_the_number_of_keys():
    scheme = DynamicKeyGrouping()
    plan = scheme.plan(50, 0)
    tally = scheme.tally(plan, 0)
    for part in range(6):
        keys = identities(np.arange(part * 65_536, (part + 1) * 65_536))
        _, tally = send(scheme, plan, tally, keys, part * 65_536)
    assert tally.space.counts.size <= 2 * (15_000 + 2 * scheme.keys + 1)
    assert tally.space.table.used[0] <= 15_100


def test_the_figures_of_68_per_cent_skew():
    cases = [Case(s, 10, 5) for s in ("key", "partial", "dynamic", "shuffle")]
    found = balance_all("countries:skew=68,messages=2000000", cases, seed=2)
    sigmas = [r.stddev_percent for r in found]
    assert sigmas == pytest.approx([20.3, 12.2, 4.0, 0.0], abs=0.6)
    assert found[2].replication <= 2.8


def test_partial_is_better_below_30_per_cent_as_the_paper_says():
    cases = [Case(s, 10, 5) for s in ("partial", "dynamic")]
    partial, dynamic = balance_all("countries:skew=20,messages=2000000", cases, replication=False)
    assert partial.stddev_percent < dynamic.stddev_percent


def test_the_hot_country_is_one_of_204():
    assert len(COUNTRIES) == 204
    assert COUNTRIES[HOT] == "United States"


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"keys": 9}, "at least 10"),
        ({"baby": 0.6}, "sum to 1"),
        ({"baby": 0.6, "teenage": 0.4, "old": 0.0}, "sum to 1"),
        ({"keys": 10, "baby": 0.01, "teenage": 0.495, "old": 0.495}, "at least one"),
        ({"cycle_s": 0}, "cycle_s must be above 0"),
        ({"cycle_s": float("inf")}, "and finite"),
        ({"rate": float("inf")}, "and finite"),
        ({"old_cycle_s": 0}, "old_cycle_s must be above 0"),
        ({"rate": 0}, "rate must be above 0"),
        ({"hysteresis": 2}, "hysteresis from 0 to 1"),
        ({"keeps": 0}, "keeps above 0"),
    ],
)
def test_bad_parameters_are_one_sentence(parameters, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        DynamicKeyGrouping(**parameters)


def test_one_worker_is_one_sentence():
    with pytest.raises(SkewlessError, match="at least 2"):
        DynamicKeyGrouping().plan(1, 0)


def test_a_key_that_is_all_of_the_stream_gets_no_more_workers_than_table_1_allows():
    """By the threshold alone: not all of so many workers can be at it."""
    scheme = DynamicKeyGrouping()
    plan = scheme.plan(20, 3)
    tally, keys = scheme.tally(plan, 0), np.full(600_000, identity("hot"), np.uint64)
    out = np.empty(keys.size, np.int32)
    scheme.send(plan, scheme.reserve(tally, keys.size), keys, np.arange(keys.size) / 1000, out)
    assert np.unique(out).size == thresholds(20).most_workers == 14


def test_a_source_that_hears_true_loads_gives_a_key_no_more_workers_than_table_1_allows():
    """A source that sent less than others hears of loads that are all above its own threshold."""
    scheme = DynamicKeyGrouping(rate=100)
    plan = scheme.plan(20, 3)
    keys = np.full(6100, identity("hot"), np.uint64)
    out, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:6000])
    for step in range(20):  # the farther from the key's first worker, the less loaded
        worker = (int(out[0]) + step) % 20
        scheme.hear(plan, tally, worker, TRUE_LOAD, np.array([1e6 - step]), 60.0)
    assert _items(tally)[identity("hot")][2] == 2  # from the next message on it is old
    _, tally = send(scheme, plan, tally, keys[6000:], 6000)
    assert _items(tally)[identity("hot")][2] == thresholds(20).most_workers == 14
