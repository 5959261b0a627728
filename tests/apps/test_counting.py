"""Summaries per worker, against plain counting: bounds hold however messages are split."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import route
from skewless.apps.counting.fold import WorkerSummaries
from skewless.apps.counting.summary import counted, merged, nothing, together
from skewless.apps.trending import Trends

KEYS = st.lists(st.integers(0, 40), min_size=1, max_size=300)


def messages(keys):
    keys = np.asarray(keys, np.int64)
    return pa.array(keys), pa.array([f"k{key}" for key in keys.tolist()])


def summary_of(keys, capacity, batch):
    parts = [counted(*messages(keys[i : i + batch]), capacity) for i in range(0, len(keys), batch)]
    held = nothing(pa.string(), capacity)
    for part in parts:
        held = merged(held, part)
    return held


@given(KEYS, st.integers(1, 20), st.integers(1, 50))
def test_the_truth_lies_within_the_bounds_and_the_error_within_total_by_capacity(keys, most, batch):
    held = summary_of(keys, most, batch)
    truth = Counter(f"k{key}" for key in keys)
    counts = held.counts
    assert counts.keys.size <= most
    assert counts.total[0] == len(keys)
    assert max([counts.missing[0], *counts.errors]) <= len(keys) / most
    rows = zip(held.items.to_pylist(), counts.counts, counts.errors, strict=True)
    for item, count, error in rows:
        assert count - error <= truth.pop(item) <= count
    assert all(left <= counts.missing[0] for left in truth.values())


@given(KEYS, st.integers(1, 8), st.sampled_from(["key", "partial", "shuffle"]))
def test_the_truth_lies_within_the_bounds_of_all_workers_together(keys, capacity, scheme):
    workers, per_key = 6, {"key": 1, "partial": 2, "shuffle": 6}[scheme]
    homes = route(np.asarray(keys, np.uint64), scheme, workers)
    parts = [summary_of(np.asarray(keys)[homes == w].tolist(), capacity, 7) for w in range(workers)]
    answer = together([p for p in parts if p.counts.total[0]], per_key)
    truth = Counter(f"k{key}" for key in keys)
    for item, count, error in zip(
        answer.items.to_pylist(), answer.counts, answer.errors, strict=True
    ):
        assert count - error <= truth.pop(item) <= count
    assert all(left <= answer.missing for left in truth.values())
    assert answer.total == len(keys)


@pytest.mark.parametrize(("scheme", "terms"), [("key", 1), ("partial", 2), ("shuffle", 16)])
def test_an_error_is_the_sum_of_as_many_terms_as_a_key_has_workers(scheme, terms):
    # The paper, section 4.2: two terms with partial, whatever the number of workers.
    workers, capacity = 16, 50
    keys = np.random.default_rng(1).zipf(1.2, 60_000).astype(np.uint64) % 20_000
    homes = route(keys, scheme, workers)
    parts = [summary_of(keys[homes == w].tolist(), capacity, 1000) for w in range(workers)]
    largest = np.sort([part.counts.missing[0] for part in parts])[::-1]
    answer = together(parts, terms)
    assert answer.missing == largest[:terms].sum()
    assert answer.errors.max() <= largest[:terms].sum()
    assert largest[-1 if scheme == "shuffle" else 0] > 0
    if scheme == "shuffle":
        assert answer.missing > 6 * largest[:2].sum()


def test_a_fold_without_a_limit_counts_exactly():
    fold = WorkerSummaries(pa.string(), None, 2, most=2)
    state = {}
    for worker, keys in enumerate([[1, 1, 2], [1, 3], [3, 3]]):
        identities, items = messages(keys)
        state = fold.on_worker(worker).reduce(state, items, identities)
    rows = [(row["item"], row["count"], row["error"]) for row in fold.finish(state)]
    assert rows == [(b"k1", 3, 0), (b"k3", 3, 0)]  # text as bytes: Spark's need not be UTF-8


def naive_trend(counts, half_life, smoothing):
    """Growth in the newest period, from counts[period][item], all by definition."""
    newest = max(counts)
    fade = 2 ** (-1 / half_life)
    found = {}
    for item, now in counts[newest].items():
        past = sum(
            (1 - fade) * fade ** (newest - 1 - period) * counts[period][item]
            for period in counts
            if period < newest
        )
        found[item] = (now + smoothing) / (past + smoothing)
    return found


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=80),
    st.integers(1, 4),
)
def test_growth_is_as_defined_whoever_saw_the_messages_and_in_whatever_order(rows, workers):
    fold = Trends(pa.string(), None, 2, 100, 10, 2.0, 1.0)
    state = {}
    for i, (period, key) in enumerate(rows):
        identities, items = messages([key])
        one = fold.on_worker(i % workers)
        state = one.merge(state, one.reduce({}, items, identities, pa.array([period * 10])))
    counts = {}
    for period, key in rows:
        counts.setdefault(period, Counter())[f"k{key}"] += 1
    found = {row["item"].decode(): row["growth"] for row in fold.finish(state)}
    assert found == pytest.approx(naive_trend(counts, 2.0, 1.0))
