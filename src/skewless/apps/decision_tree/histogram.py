"""The histogram of Ben-Haim and Tom-Tov: at most B points, each with the number of values near it.

Their four procedures: `update` is `merged` with the histogram of one value; `merged` (algorithm 2)
joins the two closest points again and again, until B are left; `sums` (3) estimates how many values
are at most b; `uniform` (4) gives the points that cut the values into equal parts.

One thing is added. A point that was never joined with another stands for one value, and all of its
count is there; the paper spreads half of it to either side. So a histogram that had room for all
values is exact, and a value that is very frequent stays where it is. Of joined points the paper's
rule holds as it is.
"""

from __future__ import annotations

import heapq
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


class Histogram(NamedTuple):
    """Points in ascending order."""

    points: F64
    counts: F64
    single: npt.NDArray[np.bool_]  # is it one value only

    @property
    def total(self) -> float:
        """How many values."""
        return float(self.counts.sum())


def empty() -> Histogram:
    """The histogram of no value."""
    return Histogram(np.empty(0), np.empty(0), np.empty(0, bool))


def histogram(values: F64, bins: int) -> Histogram:
    """The histogram of these values alone."""
    points, counts = np.unique(values, return_counts=True)
    return _shrunk(points, counts.astype(np.float64), np.ones(points.size, bool), bins)


def merged(a: Histogram, b: Histogram, bins: int) -> Histogram:
    """The histogram of both, of at most so many points."""
    points, at = np.unique(np.concatenate([a.points, b.points]), return_inverse=True)
    counts, single = np.zeros(points.size), np.ones(points.size, bool)
    np.add.at(counts, at, np.concatenate([a.counts, b.counts]))
    np.logical_and.at(single, at, np.concatenate([a.single, b.single]))
    return _shrunk(points, counts, single, bins)


def merged_all(parts: list[Histogram], bins: int) -> Histogram:
    """The histogram of all."""
    return reduce(lambda a, b: merged(a, b, bins), parts, empty())


def _shrunk(points: F64, counts: F64, single: npt.NDArray[np.bool_], bins: int) -> Histogram:
    """Join the closest neighbours, of equals the first, until so many points are left.

    A heap of gaps: an entry is stale if one of its points was joined since.
    """
    size = points.size
    if size <= bins:
        return Histogram(points, counts, single)
    p, m, alone = points.tolist(), counts.tolist(), single.tolist()
    before, after = list(range(-1, size - 1)), list(range(1, size + 1))
    held = [True] * size
    gaps = [(p[i + 1] - p[i], i, i + 1) for i in range(size - 1)]
    heapq.heapify(gaps)
    left = size
    while left > bins:
        gap, i, j = heapq.heappop(gaps)
        if not held[i] or after[i] != j or p[j] - p[i] != gap:
            continue
        p[i] += gap * (m[j] / (m[i] + m[j]))
        m[i] += m[j]
        alone[i] = held[j] = False
        after[i] = after[j]
        left -= 1
        if after[i] < size:
            before[after[i]] = i
            heapq.heappush(gaps, (p[after[i]] - p[i], i, after[i]))
        if before[i] >= 0:
            heapq.heappush(gaps, (p[i] - p[before[i]], before[i], i))
    kept = np.flatnonzero(held)
    return Histogram(np.array(p)[kept], np.array(m)[kept], np.array(alone)[kept])


def sums(held: Histogram, at: F64) -> F64:
    """About how many values are at most each of these; exact where all points are single."""
    if not held.points.size:
        return np.zeros(at.size)
    points, counts = held.points, held.counts
    spread = np.where(held.single, 0.0, counts)
    i = np.searchsorted(points, at, side="right") - 1
    inside = (i >= 0) & (i < points.size - 1)
    i, j = np.clip(i, 0, points.size - 1), np.clip(i + 1, 0, points.size - 1)
    found = np.cumsum(counts)[i] - spread[i] / 2
    width = np.where(inside, points[j] - points[i], 1.0)
    part = np.where(inside, (at - points[i]) / width, 0.0)
    found += spread[i] * part + (spread[j] - spread[i]) / 2 * part**2
    found = np.where(at >= points[-1], held.total, found)
    return np.where(at < points[0], 0.0, found)


def uniform(held: Histogram, parts: int) -> F64:
    """The parts − 1 points that cut the values into parts of about equal size, ascending."""
    if not held.points.size:
        return np.empty(0)
    points, counts = held.points, held.counts
    spread = np.where(held.single, 0.0, counts)
    wanted = held.total * np.arange(1, parts) / parts
    reached = np.cumsum(counts) - spread / 2  # at each point, with its own value
    below = reached - np.where(held.single, counts, 0.0)  # just before it
    i = np.clip(np.searchsorted(below, wanted, side="left") - 1, 0, points.size - 1)
    j = np.minimum(i + 1, points.size - 1)
    missing = np.maximum(wanted - reached[i], 0.0)
    # missing = spread_i · t + (spread_j − spread_i) / 2 · t²
    root = np.sqrt(np.maximum(spread[i] ** 2 + 2 * (spread[j] - spread[i]) * missing, 0.0))
    divisor = spread[i] + root
    part = np.divide(2 * missing, divisor, out=np.zeros_like(missing), where=divisor > 0)
    return points[i] + np.clip(part, 0.0, 1.0) * (points[j] - points[i])
