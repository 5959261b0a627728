"""D-Choices and W-Choices: enough choices, even loads, heads that plans remember."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.parts.enough import are_enough, fewest_choices
from tests.naive import d_choices as naive


def zipf(z, messages, keys=10_000, seed=0):
    shares = np.arange(1, keys + 1.0) ** -z
    drawn = np.random.default_rng(seed).choice(keys, messages, p=shares / shares.sum())
    return drawn.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def send(scheme, plan, keys, tally=None):
    tally = scheme.tally(plan, 0) if tally is None else tally
    out = np.empty(keys.size, np.int32)
    scheme.route(plan, tally, keys, np.ones(keys.size), np.zeros(keys.size), out)
    return out, tally


def imbalance(out, workers):
    loads = np.bincount(out, minlength=workers)
    return (loads.max() - loads.mean()) / out.size


falling_shares = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=30).map(
    lambda raw: np.sort(np.array(raw) / (sum(raw) * 1.25))[::-1].copy()
)


@given(falling_shares, st.integers(3, 60))
def test_the_number_of_choices_is_the_smallest_that_the_inequality_allows(shares, workers):
    tail = 1 - shares.sum()
    d = fewest_choices(shares, tail, workers, 1e-4)
    assert d == naive.fewest(shares.tolist(), workers, 1e-4)
    assert d == workers or are_enough(shares, tail, d, workers, 1e-4)


@pytest.mark.parametrize("z", [1.0, 1.5, 2.0])
def test_fewer_choices_than_the_inequality_asks_for_leave_the_head_uneven(z):
    workers, messages, heads = 50, 200_000, 25
    keys = zipf(z, messages)
    shares = np.arange(1, 10_001.0) ** -z
    shares = shares[:heads] / shares.sum()
    d = fewest_choices(shares, 1 - shares.sum(), workers, 1e-4)
    assert d > shares[0] * workers
    out, tally = send(scheme_of("d-choices"), scheme_of("d-choices").plan(workers, 1), keys)
    assert abs(tally.choices[0] - d) <= 1
    assert imbalance(out, workers) < 1e-4
    too_few = int(shares[0] * workers)
    if too_few >= 2:
        partial = scheme_of(f"partial:choices={too_few}")
        uneven, _ = send(partial, partial.plan(workers, 1), keys)
        assert imbalance(uneven, workers) > 1e-4


@pytest.mark.parametrize("name", ["d-choices", "w-choices"])
@pytest.mark.parametrize("z", [1.0, 1.5])
def test_five_sources_are_even_with_few_copies_of_keys(name, z):
    scheme, workers, keys = scheme_of(name), 50, zipf(z, 300_000, seed=3)
    plan = scheme.plan(workers, 7)
    out = np.empty(keys.size, np.int32)
    for source in range(5):
        out[source::5], _ = send(scheme, plan, np.ascontiguousarray(keys[source::5]))
    assert imbalance(out, workers) < 1e-4
    pairs = np.unique(np.stack([keys, out.astype(np.uint64)]), axis=1).shape[1]
    assert pairs < 3 * np.unique(keys).size


@pytest.mark.parametrize("name", ["d-choices", "w-choices"])
def test_weights_are_balanced_too(name):
    scheme, workers = scheme_of(name), 20
    keys = zipf(1.5, 100_000)
    weights = np.random.default_rng(4).exponential(1.0, keys.size)
    plan = scheme.plan(workers, 0)
    tally, out = scheme.tally(plan, 0), np.empty(keys.size, np.int32)
    scheme.route(plan, tally, keys, weights, np.zeros(keys.size), out)
    loads = np.bincount(out, weights, minlength=workers)
    assert loads == pytest.approx(tally.loads)
    assert loads.max() / loads.mean() < 1.001


@pytest.mark.parametrize("name", ["d-choices", "w-choices"])
def test_one_key_alone_is_spread_over_all_workers(name):
    scheme, workers = scheme_of(name), 10
    out, _ = send(scheme, scheme.plan(workers, 0), np.full(10_000, 3, np.uint64))
    assert imbalance(out, workers) < 1e-3


@pytest.mark.parametrize("name", ["d-choices", "w-choices"])
def test_a_fresh_source_starts_from_the_heads_that_were_learned(name):
    scheme, workers, keys = scheme_of(name), 20, zipf(1.5, 60_000)
    plan = scheme.plan(workers, 0)
    reports = [
        scheme.report(plan, send(scheme, plan, np.ascontiguousarray(keys[s::3]))[1])
        for s in range(3)
    ]
    report = scheme.merge(scheme.merge(reports[0], reports[1]), reports[2])
    following = scheme.replan(plan, report, Feedback.none(workers))
    assert 5 <= following.head_keys.size <= 2 / following.theta[0]
    assert following.head_total[0] == pytest.approx(20_000)
    hottest = keys[:1].copy()
    hottest[0] = following.head_keys[following.head_counts.argmax()]
    out, tally = send(scheme, following, np.repeat(hottest, 200))
    assert np.unique(out).size > 2
    again = scheme.report(following, tally)
    assert again.summary.keys.tolist() == hottest.tolist()
    assert again.summary.counts.tolist() == pytest.approx([200])
    idle = scheme.report(following, scheme.tally(following, 1))
    assert idle.summary.keys.size == 0
    assert idle.summary.total[0] == 0
    assert scheme.replan(following, idle, Feedback.none(workers)) is following


@pytest.mark.parametrize("name", ["d-choices", "w-choices"])
def test_with_a_half_life_plans_forget_old_heads(name):
    scheme, workers = scheme_of(f"{name}:half_life=500"), 10
    plan = scheme.plan(workers, 0)
    for key in (1, 2):
        _, tally = send(scheme, plan, np.full(5000, key, np.uint64))
        plan = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(workers))
    assert plan.head_keys.tolist() == [2]


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("d-choices:theta=0", "theta"),
        ("w-choices:theta=2", "theta"),
        ("d-choices:epsilon=0", "epsilon"),
        ("d-choices:refresh=0", "refresh"),
        ("w-choices:half_life=0.5", "half_life"),
    ],
)
def test_parameters_out_of_range_are_refused(spec, word):
    with pytest.raises(SkewlessError, match=word):
        scheme_of(spec)
