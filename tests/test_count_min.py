"""The guarantees of Count-Min and of its family of hash functions."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.sketch.count_min import (
    PRIME,
    add_all,
    count_min,
    draw_hashes,
    estimates,
    merge,
    universal_choice,
    universal_hash,
)

u64 = st.integers(0, 2**64 - 1)
coefficients = st.integers(0, PRIME - 1)


@given(u64, coefficients, coefficients, coefficients)
def test_the_hash_is_the_linear_function_modulo_the_prime(key, a, b, c):
    expected = (a * (key >> 32) + b * (key % 2**32) + c) % PRIME
    assert int(universal_hash(*(np.uint64(x) for x in (key, a, b, c)))) == expected


def test_two_keys_seldom_collide_whatever_they_are():
    pairs = [(0, 1), (5, 5 + PRIME), (1 << 32, 1), (2**64 - 1, 2**63 - 1)]
    functions, size = draw_hashes(4000, 1), 20
    for one, other in pairs:
        hits = sum(
            universal_choice(np.uint64(one), *f, size)
            == universal_choice(np.uint64(other), *f, size)
            for f in functions
        )
        assert hits <= 4000 / size + 5 * (4000 / size) ** 0.5


def counted(keys, seed=0):
    sketch = count_min(0.05, 0.01, seed)
    add_all(sketch, keys, np.ones(keys.size))
    return sketch


def test_estimates_are_never_low_and_seldom_high_by_epsilon():
    keys = np.random.default_rng(2).zipf(1.2, 20_000).astype(np.uint64) % np.uint64(3000)
    truth = Counter(keys.tolist())
    distinct = np.array(list(truth), np.uint64)
    over = estimates(counted(keys), distinct) - np.array(list(truth.values()))
    assert over.min() >= 0
    assert (over > 0.05 * keys.size).mean() <= 0.01


def test_a_merged_sketch_is_the_sketch_of_both_streams():
    keys = np.random.default_rng(3).integers(0, 500, 4000).astype(np.uint64)
    both = merge(counted(keys[:1000]), counted(keys[1000:]))
    assert np.array_equal(both.counts, counted(keys).counts)
    assert both.total[0] == 4000


def test_sketches_with_different_functions_are_not_merged():
    keys = np.arange(3, dtype=np.uint64)
    with pytest.raises(SkewlessError, match="same epsilon"):
        merge(counted(keys, 1), counted(keys, 2))


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (0.1, 0), (1, 0.1), (0.1, 1)])
def test_bounds_that_are_no_shares_are_refused(epsilon, delta):
    with pytest.raises(SkewlessError, match="between 0 and 1"):
        count_min(epsilon, delta)
