"""Which grid each hot key gets, and which partition each of its cells: pure arithmetic.

A key with n rows on the left and m on the right has a grid of a × b cells. A left row is in one of
a stripes and is copied into its b cells, a right row is in one of b stripes and is copied into a
cells. So a cell costs n/a + m/b + β·r/(ab), with r result rows of weight β each, and the copies
cost (b − 1)·n + (a − 1)·m rows. Cells below a limit are placed, the largest first, each where the
load is least. Several limits are tried, since small cells are even but copy much.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

# Largest cell, in shares of the mean load: coarse cells first, for they copy least.
_LIMITS = (2.0, 1.5, 1.2, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125, 0.09, 0.0625, 0.045, 0.03)


_MOST_CELLS = 100  # for each partition: what is placed one by one takes time


class Pieces(NamedTuple):
    """What is to be placed: one entry per hot key, or per side's null keys."""

    left: F64  # [k] rows
    right: F64  # [k] rows
    results: F64  # [k] rows times their weight
    splits_left: npt.NDArray[np.bool_]  # [k] may a be above 1
    splits_right: npt.NDArray[np.bool_]  # [k] may b be above 1


class Layout(NamedTuple):
    """Where all cells go."""

    stripes_left: I64  # [k] a
    stripes_right: I64  # [k] b
    starts: I64  # [k + 1] of each key's cells, row by row of its grid
    places: I64  # [cells] partitions
    loads: F64  # [partitions] expected work


def best_grid(
    left: float, right: float, results: float, limit: float, most_left: int, most_right: int
) -> tuple[int, int]:
    """The grid that copies least with no cell above the limit; ties go to the fewest cells.

    If none has cells that small, the one with the smallest cells.

    most_left, most_right: the most stripes of each side
    """
    a = np.arange(1, most_left + 1, dtype=np.float64)
    room = limit - left / a
    with np.errstate(divide="ignore", invalid="ignore"):
        b = np.where(room > 0, np.ceil((right + results / a) / room - 1e-9), np.inf)
    b = np.maximum(b, 1)
    fits = b <= most_right
    if not fits.any():
        return _smallest_cells(left, right, results, most_left, most_right)
    copies = np.where(fits, (b - 1) * left + (a - 1) * right, np.inf)
    least = np.flatnonzero(copies == copies.min())
    best = least[np.argmin(a[least] * b[least])]
    return int(a[best]), int(b[best])


def _smallest_cells(
    left: float, right: float, results: float, most_left: int, most_right: int
) -> tuple[int, int]:
    """More stripes never make a cell larger; more of them than help are not taken."""
    a = most_left if left or results else 1
    b = most_right if right or results else 1
    return a, b


def arrange(pieces: Pieces, base: F64, target: float) -> Layout:
    """Grids and places with the fewest copies that keep every partition within 1 + target.

    That is of the mean without any copies. If no arrangement does, the fullest partition may exceed
    by as much the least that any arrangement gives it.

    base: [partitions] load that is there already
    target: for example 0.05
    """
    work = pieces.left + pieces.right + pieces.results
    mean = (float(work.sum()) + float(base.sum())) / base.size
    layouts: list[Layout] = []
    for limit in _LIMITS:
        a, b = _grids(pieces, base.size, limit * mean)
        if layouts and (a * b).sum() > _MOST_CELLS * base.size + work.size:
            break  # smaller cells would be more still
        layouts.append(_arranged(pieces, base, a, b))
    allowed = (1 + target) * max(mean, min(float(layout.loads.max()) for layout in layouts))
    good = [layout for layout in layouts if layout.loads.max() <= allowed * (1 + 1e-9)]
    return min(good, key=lambda layout: float(layout.loads.sum()))


def _grids(pieces: Pieces, partitions: int, limit: float) -> tuple[I64, I64]:
    """The stripes of each key, left and right, that keep its cells below a limit."""
    work = pieces.left + pieces.right + pieces.results
    a, b = np.ones(work.size, np.int64), np.ones(work.size, np.int64)
    most = 8 * partitions
    for i in np.flatnonzero(work > limit):
        bound = min(most, 4 * np.ceil(work[i] / limit))
        rows = float(pieces.left[i]), float(pieces.right[i])
        # A stripe has a row, or it is none.
        most_left = int(min(bound, max(1, rows[0]))) if pieces.splits_left[i] else 1
        most_right = int(min(bound, max(1, rows[1]))) if pieces.splits_right[i] else 1
        a[i], b[i] = best_grid(*rows, float(pieces.results[i]), limit, most_left, most_right)
    return a, b


def _arranged(pieces: Pieces, base: F64, a: I64, b: I64) -> Layout:
    cells = pieces.left / a + pieces.right / b + pieces.results / (a * b)
    places, loads = place(cells, a * b, base)
    starts = np.concatenate([[0], np.cumsum(a * b)])
    return Layout(a, b, starts, places, loads)


def place(weights: F64, counts: I64, base: F64) -> tuple[I64, F64]:
    """A partition for each cell, and the loads that follow; heavy cells first, to the least loaded.

    weights: [k] of each cell of a key
    counts: [k] cells of a key
    """
    starts = np.concatenate([[0], np.cumsum(counts)])
    places = np.empty(int(starts[-1]), np.int64)
    loads = base.astype(np.float64)
    heap = [(float(load), i) for i, load in enumerate(loads)]
    heapq.heapify(heap)
    for i in np.argsort(-weights, kind="stable"):
        for cell in range(starts[i], starts[i + 1]):
            load, at = heap[0]
            places[cell] = at
            heapq.heapreplace(heap, (load + float(weights[i]), at))
    for load, at in heap:
        loads[at] = load
    return places, loads
