"""Packing weighted items onto workers: largest first, and repairing a packing by few moves."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skewless.schemes.api import I64

Weights = npt.NDArray[np.float64] | npt.NDArray[np.int64]


def pack(weights: Weights, workers: int) -> I64:
    """The worker of each weight in turn: the least loaded, of equals the first."""
    heap = [(0, w) for w in range(workers)]
    out = np.empty(weights.size, np.int64)
    for i, weight in enumerate(weights.tolist()):
        load, worker = heap[0]
        out[i] = worker
        heapq.heapreplace(heap, (load + weight, worker))
    return out


def largest_first(weights: Weights, workers: int) -> I64:
    """LPT: the largest weight first to the least loaded worker; ties in the order given.

    The largest load is at most 4/3 − 1/(3W) of the best possible (Graham, 1969).
    """
    order = np.argsort(-weights, kind="stable")
    out = np.empty(weights.size, np.int64)
    out[order] = pack(weights[order], workers)
    return out


def repair(
    weights: Weights,
    homes: Sequence[int] | I64,
    workers: int,
    moves: int,
    limits: npt.NDArray[np.float64] | None = None,
) -> I64:
    """The packing `homes`, evened out by moving at most that many items.

    Each move takes from the most to the least loaded worker the item that leaves the larger of
    the two least loaded; it ends when no move helps. With limits, a load is what exceeds the
    worker's own, and it ends as soon as none does.
    """
    out = np.array(homes, np.int64)
    loads = np.bincount(out, weights, minlength=workers) - (0.0 if limits is None else limits)
    moved: set[int] = set()
    while True:
        fullest, emptiest = int(loads.argmax()), int(loads.argmin())
        if limits is not None and loads[fullest] <= 0:
            return out
        items = np.flatnonzero((out == fullest) & (weights > 0))
        if len(moved) >= moves:
            items = items[np.isin(items, list(moved))]
        if not items.size:
            return out
        larger = np.maximum(loads[fullest] - weights[items], loads[emptiest] + weights[items])
        best = int(larger.argmin())
        if larger[best] >= loads[fullest] * (1 - 1e-12):
            return out
        item = int(items[best])
        out[item] = emptiest
        loads[fullest] -= weights[item]
        loads[emptiest] += weights[item]
        moved.add(item)


def repack(weights: Weights, homes: Sequence[int] | I64, workers: int, moves: int) -> I64:
    """The packing `homes` repaired, or packed from scratch where that pays: within that many moves.

    A fresh packing moves nearly everything; it must bring the largest load down by a hundredth.
    """
    repaired = repair(weights, homes, workers, moves)
    fresh = largest_first(weights, workers)
    if np.count_nonzero(fresh != np.asarray(homes)) > moves:
        return repaired
    most_fresh = np.bincount(fresh, weights, minlength=workers).max()
    most_repaired = np.bincount(repaired, weights, minlength=workers).max()
    return fresh if most_fresh < 0.99 * most_repaired else repaired
