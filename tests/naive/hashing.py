"""Choices in plain Python whole numbers, on top of the xxhash library."""

from functools import cache

import xxhash


def choice_hash(key: int, number: int, seed: int) -> int:
    literal = (2 * seed + number).to_bytes(4, "little")
    return xxhash.xxh64_intdigest(
        key.to_bytes(8, "little"), seed=xxhash.xxh64_intdigest(literal, seed=42)
    )


def source_of(key: int, sources: int, seed: int) -> int:
    literal = (-2 - seed).to_bytes(4, "little", signed=True)
    start = xxhash.xxh64_intdigest(literal, seed=42)
    return scale(xxhash.xxh64_intdigest(key.to_bytes(8, "little"), seed=start), sources)


def scale(h: int, size: int) -> int:
    return ((h >> 33) * size) >> 31


@cache
def _choices(key: int, workers: int, count: int, seed: int) -> list[int]:
    first = scale(choice_hash(key, 0, seed), workers)
    if count == 1:
        return [first]
    others = [w for w in range(workers) if w != first]
    second = others[scale(choice_hash(key, 1, seed), workers - 1)]
    prime = next(p for p in range(workers, 3 * workers) if p > 1 and is_prime(p))
    walk = [(first + i * (second - first)) % prime for i in range(prime)]
    return [w for w in walk if w < workers][:count]


def choices(key: int, workers: int, count: int, seed: int) -> list[int]:
    return list(_choices(key, workers, count, seed))


@cache
def is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, number))
