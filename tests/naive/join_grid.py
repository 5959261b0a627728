"""The grid of a hot key and the places of its cells, by trying everything."""

import math


def cell(n, m, r, a, b):
    return n / a + m / b + r / (a * b)


def best_copies(n, m, r, limit, most_a, most_b):
    """The fewest copied rows of any grid with small enough cells, or None if there is no such."""
    costs = [
        (b - 1) * n + (a - 1) * m
        for a in range(1, most_a + 1)
        for b in range(1, most_b + 1)
        if cell(n, m, r, a, b) <= limit * (1 + 1e-6)
    ]
    return min(costs, default=None)


def place(weights, counts, base):
    """Cell by cell, heaviest first, each to the partition that has least and comes first."""
    loads = list(base)
    places = [[] for _ in weights]
    for i in sorted(range(len(weights)), key=lambda i: (-weights[i], i)):
        for _ in range(counts[i]):
            at = min(range(len(loads)), key=lambda q: (loads[q], q))
            loads[at] += weights[i]
            places[i].append(at)
    return [at for cells in places for at in cells], loads


def murmur(data_int, seed):
    """One int through murmur3 as Spark writes it, on Python's own numbers."""
    mask = 0xFFFFFFFF

    def turned(x, bits):
        return ((x << bits) | (x >> (32 - bits))) & mask

    k = turned((data_int & mask) * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    h = (turned((seed & mask) ^ k, 13) * 5 + 0xE6546B64) & mask ^ 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & mask
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def joined(left, right, how):
    """A join of lists of (key, row), row by row; a key of None meets nobody."""
    pairs, met_right = [], set()
    for key, row in left:
        partners = [j for j, (k, _) in enumerate(right) if k == key and key is not None]
        met_right.update(partners)
        pairs += [(row, right[j][1]) for j in partners]
        if not partners and how in ("left", "full"):
            pairs.append((row, None))
    if how in ("right", "full"):
        pairs += [(None, row) for j, (_, row) in enumerate(right) if j not in met_right]
    return sorted(pairs, key=lambda pair: tuple(-math.inf if x is None else x for x in pair))
