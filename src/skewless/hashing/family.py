"""Identities to a family of distinct workers.

The first two choices of a key come from two hashes of its identity: choice i hashes it with the
seed `xxhash64(lit(2·seed + i))`, so that a Spark Column computes the same by
`xxhash64(lit(2·seed + i), identity)`. 31 bits of the hash are scaled to the range, which needs no
division and cannot overflow in Spark's ANSI mode; the second ranges over the other W − 1 workers.
Further choices continue the arithmetic progression that the first two begin, modulo the least
prime ≥ W, leaving out numbers ≥ W: distinct for all W, O(1) each, no further hash. (Balanced
allocation with such double hashing is as even as with independent hashes: Mitzenmacher, 2014.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from skewless.arguments import whole
from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.hashing.literals import of_literals
from skewless.hashing.xxh64 import U64, hash_long

SALT = -1  # the literal that salts are hashed with; those of choices are not negative


def choice_seeds(seed: int) -> U64:
    """The hash seeds of the first two choices, u64[2]: the identities of two int literals."""
    seed = check_seed(seed)
    return of_literals(2 * seed, 2 * seed + 1)


def source_seeds(seed: int) -> U64:
    """The hash seed of sources, u64[1], of its own: a key's source says nothing of its choices."""
    return of_literals(SALT - 1 - check_seed(seed))


def check_seed(seed: SupportsIndex) -> int:
    """The seed as an int, whatever kind of whole number it is; one without literals is refused."""
    number = whole("A seed", seed)
    if not 0 <= number < 2**30:
        raise SkewlessError(f"A seed is a whole number from 0 to {2**30 - 1}, not {number}.")
    return number


def salt_seed() -> U64:
    """The hash seed of salts, u64[1]: the identity of the int literal `SALT`."""
    return of_literals(SALT)


@inlined
def scale(h: np.uint64, size: np.uint64) -> np.int64:
    """31 bits of a hash scaled to 0 … size − 1."""
    return np.int64(((h >> np.uint64(33)) * size) >> np.uint64(31))


@inlined
def first_choice(identity: np.uint64, seeds: U64, workers: np.int64) -> np.int64:
    """The worker that key grouping takes."""
    return scale(hash_long(identity, seeds[0]), np.uint64(workers))


@inlined
def second_choice(identity: np.uint64, seeds: U64, workers: np.int64, first: np.int64) -> np.int64:
    """A worker other than the first, uniform over the rest; needs workers ≥ 2."""
    second = scale(hash_long(identity, seeds[1]), np.uint64(workers - 1))
    return second + np.int64(second >= first)


@inlined
def next_choice(choice: np.int64, step: np.int64, workers: np.int64, prime: np.int64) -> np.int64:
    """The choice after `choice` in the progression with this step (1 … prime − 1)."""
    choice += step
    if choice >= prime:
        choice -= prime
    while choice >= workers:
        choice += step
        if choice >= prime:
            choice -= prime
    return choice


@inlined
def stride(first: np.int64, second: np.int64, prime: np.int64) -> np.int64:
    """The step of the progression that begins first, second."""
    return second - first if second > first else second - first + prime


def least_prime(workers: int) -> int:
    """The least prime ≥ workers (and ≥ 2)."""
    candidate = max(2, workers)
    while any(candidate % d == 0 for d in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def choices(identity: int, workers: int, count: int, seed: int = 0) -> list[int]:
    """The first `count` choices of one key, for people and tests; kernels compute them in place."""
    if not 1 <= count <= workers:
        raise SkewlessError(
            f"{count} distinct choices need at least {count} workers, not {workers}."
        )
    seeds, prime = choice_seeds(seed), least_prime(workers)
    key = np.uint64(identity)
    chosen: Sequence[int] = [int(first_choice(key, seeds, workers))]
    if count > 1:
        second = int(second_choice(key, seeds, workers, chosen[0]))
        step = int(stride(chosen[0], second, prime))
        chosen = [*chosen, second]
        while len(chosen) < count:
            chosen.append(int(next_choice(chosen[-1], step, workers, prime)))
    return list(chosen)
