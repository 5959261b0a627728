"""The decision tree's histogram, against a literal twin of the paper's procedures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.apps.decision_tree.histogram import (
    empty,
    histogram,
    merged,
    merged_all,
    sums,
    uniform,
)
from tests.naive import bin_histogram as naive

VALUES = st.lists(st.integers(-30, 30).map(lambda i: i / 4), max_size=60)
MOST = st.integers(2, 12)


def as_bins(held):
    return [list(one) for one in zip(*(part.tolist() for part in held), strict=True)]


def same(mine, twin):
    assert [one[2] for one in as_bins(mine)] == [one[2] for one in twin]
    numbers = [one[:2] for one in twin]
    assert np.array(as_bins(mine))[:, :2] == pytest.approx(np.array(numbers), abs=1e-9)


# Gaps that are equal but for rounding may be joined in another order: values without such ties.
APART = st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=40, unique=True)


@given(APART, MOST)
def test_one_value_after_the_other_is_the_papers_update(values, most):
    mine, twin = empty(), []
    for value in values:
        mine = merged(mine, histogram(np.array([value]), most), most)
        twin = naive.update(twin, value, most)
    assert mine.total == len(values)
    assert mine.points.size == len(twin)
    assert (np.diff(mine.points) > 0).all()


def test_update_and_merge_equal_the_twin():
    random = np.random.default_rng(4)
    for most in (2, 5, 16):
        parts, twins = [], []
        for _ in range(3):
            values = np.round(random.normal(size=70), 1) + random.normal(size=70) * 1e-3
            values[:20] = 0.5  # a value that is very frequent
            mine, twin = empty(), []
            for value in values:
                mine = merged(mine, histogram(np.array([value]), most), most)
                twin = naive.update(twin, float(value), most)
            same(mine, twin)
            parts.append(mine)
            twins.append(twin)
        whole = merged_all(parts, most)
        same(whole, naive.merge(naive.merge(twins[0], twins[1], most), twins[2], most))


@given(VALUES.filter(bool), MOST, st.lists(st.floats(-9, 9), min_size=1, max_size=8))
def test_sums_equal_the_twin_and_are_exact_where_all_values_have_room(values, most, at):
    held = histogram(np.array(values), most)
    bins = as_bins(held)
    found = sums(held, np.array(at))
    assert found == pytest.approx([naive.total_until(bins, b) for b in at])
    if len(set(values)) <= most:
        assert found.tolist() == [sum(v <= b for v in values) for b in at]


@given(VALUES.filter(bool), MOST, st.integers(2, 9))
def test_uniform_cuts_into_equal_parts_as_the_twin_does(values, most, parts):
    held = histogram(np.array(values), most)
    cuts = uniform(held, parts)
    assert cuts.size == parts - 1
    assert (np.diff(cuts) >= 0).all()
    wanted = [held.total * i / parts for i in range(1, parts)]
    twin = [naive.cut_at(as_bins(held), one) for one in wanted]
    assert cuts == pytest.approx(twin, abs=1e-6)


@given(VALUES, VALUES, MOST)
def test_merging_loses_no_value_and_the_empty_histogram_changes_nothing(a, b, most):
    first, second = histogram(np.array(a), most), histogram(np.array(b), most)
    both = merged(first, second, most)
    assert both.total == len(a) + len(b)
    assert both.points.size <= most
    for mine, other in zip(merged(first, empty(), most), first, strict=True):
        np.testing.assert_array_equal(mine, other)
