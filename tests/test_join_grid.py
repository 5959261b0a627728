"""Grids of hot keys and the search of slots, against slow twins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from skewless.spark.join.grid import Pieces, arrange, best_grid, place
from skewless.spark.join.kinds import ANTI, FULL, INNER, LEFT, RIGHT, SEMI, kind_of
from skewless.spark.join.slots import places, search
from tests.naive import join_grid as naive

rows = st.integers(0, 5000).map(float)


@given(rows, rows, st.floats(0, 3), st.floats(1, 3000), st.integers(1, 12), st.integers(1, 12))
def test_a_grid_copies_as_little_as_any_with_cells_below_the_limit(
    n, m, weight, limit, most_a, most_b
):
    results = weight * n * m
    a, b = best_grid(n, m, results, limit, most_a, most_b)
    assert 1 <= a <= most_a
    assert 1 <= b <= most_b
    least = naive.best_copies(n, m, results, limit, most_a, most_b)
    if least is None:
        sizes = itertools.product(range(1, most_a + 1), range(1, most_b + 1))
        smallest = min(naive.cell(n, m, results, i, j) for i, j in sizes)
        assert naive.cell(n, m, results, a, b) == pytest.approx(smallest)
    else:
        assert naive.cell(n, m, results, a, b) <= limit * (1 + 1e-6)
        assert (b - 1) * n + (a - 1) * m == pytest.approx(least)


weighed = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 6)), max_size=8)


@given(weighed, st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_cells_are_placed_as_one_by_one(keys, base):
    weights = np.array([w for w, _ in keys], np.float64)
    counts = np.array([c for _, c in keys], np.int64)
    found, loads = place(weights, counts, np.array(base, np.float64))
    expected, expected_loads = naive.place(weights.tolist(), counts.tolist(), base)
    assert found.tolist() == expected
    assert loads.tolist() == pytest.approx(expected_loads)


def pieces(left, right, weight=1.0, splits=(True, True)):
    left, right = np.array(left, np.float64), np.array(right, np.float64)
    can = [np.full(left.size, may) for may in splits]
    return Pieces(left, right, weight * left * right, *can)


def test_a_key_that_is_hot_on_both_sides_is_split_on_both_and_all_is_even():
    base = np.random.default_rng(1).uniform(900, 1100, 16)
    layout = arrange(pieces([20_000, 3000], [5000, 10]), base, 0.05)
    assert layout.stripes_left[0] > 1
    assert layout.stripes_right[0] > 1
    assert layout.loads.max() <= 1.05 * layout.loads.mean()
    assert layout.starts[-1] == layout.places.size


def test_a_side_that_must_not_be_split_is_not():
    base = np.zeros(8)
    layout = arrange(pieces([1000], [1000], splits=(False, True)), base, 0.05)
    assert layout.stripes_left.tolist() == [1]
    assert layout.stripes_right[0] >= 8
    alone = arrange(pieces([1000], [1000], splits=(False, False)), base, 0.05)
    assert (alone.stripes_left * alone.stripes_right).tolist() == [1]


def test_a_key_that_fits_is_placed_whole():
    layout = arrange(pieces([100], [1]), np.full(4, 1000.0), 0.2)
    assert (layout.stripes_left * layout.stripes_right).tolist() == [1]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(1, 500))
def test_the_place_of_a_slot_is_sparks_murmur3(key_hash, slot, partitions):
    found = places(key_hash, np.array([slot], np.int32), partitions)
    assert found.tolist() == [naive.murmur(slot, key_hash) % partitions]


@settings(deadline=None)
@given(st.integers(-(2**31), 2**31 - 1), st.integers(1, 40), st.data())
def test_every_cell_gets_a_slot_of_its_own_that_lands_where_it_should(key_hash, partitions, data):
    wanted = data.draw(st.lists(st.integers(0, partitions - 1), max_size=60))
    slots = search(key_hash, np.array(wanted, np.int64), partitions)
    assert len(set(slots.tolist())) == len(wanted)
    assert places(key_hash, slots, partitions).tolist() == wanted


def cells(key, row, a, b, turned):
    """Where a row goes if "x" is split: its stripe by its own number, and all cells of that."""
    if key != "x":
        return [0]
    if turned:
        return [i * b + row % b for i in range(a)]
    return [(row % a) * b + j for j in range(b)]


small = st.lists(st.sampled_from([None, "x", "y"]), max_size=12)


@given(
    small,
    small,
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([INNER, LEFT, RIGHT, FULL]),
)
def test_the_table_of_splits_is_right_for_every_type(left, right, grid, kind):
    """A join in cells, by hand, is exact exactly where `Kind` says that it is."""
    left = [(k, i) for i, k in enumerate(left)]
    right = [(k, i) for i, k in enumerate(right)]
    a, b = grid
    seen_left, seen_right = "x" in dict(left), "x" in dict(right)
    a = a if kind.splits_left(seen_left) else 1
    b = b if kind.splits_right(seen_right) else 1
    found = []
    for cell in range(a * b):
        ours = [(k, i) for k, i in left if cell in cells(k, i, a, b, turned=False)]
        theirs = [(k, i) for k, i in right if cell in cells(k, i, a, b, turned=True)]
        for mine, other in naive.joined(ours, theirs, kind.name):
            copied_left = other is None and left[mine][0] == "x" and b > 1
            copied_right = mine is None and right[other][0] == "x" and a > 1
            if not copied_left and not copied_right:
                found.append((mine, other))
    assert sorted(found, key=str) == sorted(naive.joined(left, right, kind.name), key=str)


def test_without_certainty_only_sides_whose_partners_may_be_dropped_are_split():
    may = {
        k.name: (k.splits_left(False), k.splits_right(False))
        for k in (INNER, LEFT, RIGHT, FULL, SEMI, ANTI)
    }
    assert may == {
        "inner": (True, True),
        "left": (True, False),
        "right": (False, True),
        "full": (False, False),
        "left_semi": (True, False),
        "left_anti": (True, False),
    }


def test_all_spellings_of_spark_are_known():
    spellings = {
        "inner": "inner cross",
        "full": "outer full fullouter full_outer",
        "left": "left leftouter left_outer LEFT_OUTER",
        "right": "right rightouter right_outer",
        "left_semi": "semi leftsemi left_semi",
        "left_anti": "anti leftanti left_anti",
    }
    for name, spelled in spellings.items():
        assert {kind_of(s).name for s in spelled.split()} == {name}


def test_a_key_with_one_partner_is_split_on_one_side_whatever_the_partitions():
    for partitions in (4, 200, 4000):
        hot = pieces([1e9], [1.0])
        layout = arrange(hot, np.full(partitions, 1e5), 0.05)
        assert layout.stripes_right.tolist() == [1]
        assert layout.places.size <= 101 * partitions
        assert layout.loads.max() <= 1.1 * layout.loads.mean()
