"""The guarantees of SpaceSaving, and its equality with a twin of dicts and lists."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.sketch.space_saving import (
    add_all,
    capacity_for,
    estimate,
    heavy_hitters,
    merge,
    preload,
    space_saving,
    summarise,
)
from tests.naive import space_saving as naive

streams = st.builds(
    lambda seed, z, keys, n: np.random.default_rng(seed).zipf(z, n).astype(np.uint64) % keys,
    st.integers(0, 2**32),
    st.floats(1.05, 3.0),
    st.integers(1, 400),
    st.integers(0, 1500),
)
capacities = st.integers(1, 60)


def summary_of(keys, capacity, weights=None, half_life=None):
    summary = space_saving(capacity, half_life)
    add_all(
        summary, np.asarray(keys, np.uint64), np.ones(len(keys)) if weights is None else weights
    )
    return summary


def check_guarantees(summary, truth, slack=1e-6):
    total = sum(truth.values())
    limit = 1.125 * total / summary.capacity[0] + slack
    held = dict(zip(summary.keys.tolist(), summary.counts.tolist(), strict=True))
    errors = dict(zip(summary.keys.tolist(), summary.errors.tolist(), strict=True))
    assert summary.total[0] == pytest.approx(total)
    assert summary.missing[0] <= limit
    for key, count in truth.items():
        if key in held:
            assert count - slack <= held[key] <= count + errors[key] + slack
            assert errors[key] <= limit
        else:
            assert count <= summary.missing[0] + slack
    assert all(key in held for key, count in truth.items() if count > limit)


weighings = st.sampled_from(
    [
        lambda keys: np.ones(keys.size),
        lambda keys: 1.0 + keys % 7 * 0.25,
        lambda keys: keys % 3 * 0.5,
    ]
)


@given(streams, capacities, weighings)
def test_it_equals_the_twin_of_dicts_and_lists(keys, capacity, weighing):
    weights = weighing(keys)
    summary = summary_of(keys, capacity, weights)
    twin = naive.SpaceSaving(capacity)
    for key, weight in zip(keys.tolist(), weights.tolist(), strict=True):
        twin.add(key, weight)
    used = len(twin.order)
    assert summary.keys[:used].tolist() == twin.order
    assert summary.counts[:used].tolist() == [twin.count[k] for k in twin.order]
    assert summary.errors[:used].tolist() == [twin.error[k] for k in twin.order]
    assert summarise(summary).missing[0] == twin.bound()
    assert all(
        estimate(summary, key) == twin.sieve.get(twin.place(int(key)), 0) for key in range(400, 450)
    )


@given(streams, capacities)
def test_estimates_are_never_low_and_high_by_epsilon_at_most(keys, capacity):
    check_guarantees(summarise(summary_of(keys, capacity)), Counter(keys.tolist()))


@given(streams, capacities)
def test_messages_of_weight_one_keep_the_bounds_of_the_textbook(keys, capacity):
    summary = summary_of(keys, capacity)
    assert summary.lifts[0] == 0
    assert summary.counts.sum() <= keys.size
    assert summary.errors.max() <= keys.size / capacity
    assert summary.sieve.max() <= keys.size / capacity


def test_rare_keys_stay_in_the_sieve_and_leave_the_counters_to_frequent_ones():
    summary = summary_of(np.arange(10_000) + 1, 10)
    assert summary.counts.sum() < 3_000  # the textbook's counters sum to 10,000


@given(streams, capacities, st.integers(0, 2**32), st.sampled_from(["as they come", "falling"]))
def test_the_guarantees_hold_for_weighted_messages(keys, capacity, seed, order):
    weights = np.random.default_rng(seed).exponential(3.0, keys.size)
    if order == "falling":
        weights = np.sort(weights)[::-1] ** 4
    truth = Counter()
    for key, weight in zip(keys.tolist(), weights.tolist(), strict=True):
        truth[key] += weight
    check_guarantees(summarise(summary_of(keys, capacity, weights)), truth)


@given(st.lists(streams, min_size=2, max_size=5), capacities)
def test_the_errors_of_merged_summaries_add_up_and_no_more(parts, capacity):
    merged = summarise(space_saving(capacity))
    for keys in parts:
        merged = merge(merged, summarise(summary_of(keys, capacity)))
    assert merged.keys.size <= capacity
    check_guarantees(merged, Counter(np.concatenate(parts).tolist()))


@given(streams, capacities)
def test_every_counter_is_found_again_through_the_index(keys, capacity):
    summary = summary_of(keys, capacity)
    for slot in range(summary.used[0]):
        assert estimate(summary, summary.keys[slot]) == summary.counts[slot]
    assert np.count_nonzero(summary.cells >= 0) == summary.used[0]


def test_an_old_hot_key_fades_with_the_half_life():
    summary = space_saving(20, half_life=100)
    add_all(summary, np.full(1000, 7, np.uint64), np.ones(1000))
    before = estimate(summary, np.uint64(7))
    add_all(summary, np.full(300, 8, np.uint64), np.ones(300))
    assert estimate(summary, np.uint64(7)) == pytest.approx(before / 8)
    assert estimate(summary, np.uint64(8)) > estimate(summary, np.uint64(7))


def test_a_long_decaying_stream_equals_the_sum_of_faded_weights():
    half_life, messages = 10.0, 20_000  # the gain passes its limit many times
    keys = np.random.default_rng(1).integers(0, 5, messages).astype(np.uint64)
    summary = summarise(summary_of(keys, 10, half_life=half_life))
    ages = np.arange(messages, 0, -1)
    faded = np.bincount(keys.astype(np.int64), 0.5 ** (ages / half_life))
    assert summary.counts == pytest.approx(faded)
    assert summary.total[0] == pytest.approx(faded.sum())


def test_preloaded_keys_do_not_fade_beside_each_other():
    summary = space_saving(50, half_life=10)
    keys = np.arange(40, dtype=np.uint64)
    preload(summary, keys, np.full(40, 100.0), 4000.0)
    assert [estimate(summary, key) for key in keys] == pytest.approx([100.0] * 40)
    assert summarise(summary).total[0] == pytest.approx(4000)


def test_a_preloaded_summary_knows_its_keys_and_the_total():
    summary = space_saving(10)
    preload(summary, np.array([3, 4], np.uint64), np.array([30.0, 10.0]), 100.0)
    keys, counts = heavy_hitters(summarise(summary), 0.2)
    assert keys.tolist() == [3]
    assert counts.tolist() == [30.0]
    preload(summary, np.array([5], np.uint64), np.array([60.0]), 100.0)
    assert heavy_hitters(summarise(summary), 0.01)[0].tolist() == [5, 3, 4]  # hottest first


def test_all_messages_of_one_key_are_counted_exactly_in_one_counter():
    known = summarise(summary_of([5] * 100, 1))
    assert (known.counts.tolist(), known.errors.tolist()) == ([100.0], [0.0])


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_summary_without_counters_is_refused(wrong):
    with pytest.raises(SkewlessError, match="at least 1 counter"):
        space_saving(wrong)


@pytest.mark.parametrize("wrong", [0, -0.1, 1.5])
def test_an_error_that_is_no_share_is_refused(wrong):
    with pytest.raises(SkewlessError, match="share"):
        capacity_for(wrong)


def test_a_half_life_of_nothing_is_refused():
    with pytest.raises(SkewlessError, match="half-life"):
        space_saving(5, 0)
