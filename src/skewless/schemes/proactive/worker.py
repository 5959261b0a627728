"""The worker of Proactive Online Shuffle Grouping: learns costs, tells them once they are stable.

Rivetti et al., section III-B. Each worker counts its messages (F) and adds up their costs (V) in
two Count-Min matrices with the same hash functions. After N messages (START) it takes a snapshot
S = V/F; after every N more (STABILIZING) it compares: η = Σ|S − V/F| / ΣS over all cells. If η ≤ μ
it sends both matrices, clears them and starts again, else takes a new snapshot.

What the paper leaves open is decided here. A cell that was never hit has S = V/F = 0, so it adds
nothing; one first hit since the snapshot has S = 0 and adds all of its V/F. Costs that are all
zero are stable. With `stability=mass` every cell is weighted by its F, so that cells of rare keys
count as little as they matter: η = Σ F·|S − V/F| / Σ F·S.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.schemes.api import F64, I64, NO_SIGNAL
from skewless.sketch.count_min import universal_choice

MATRICES, REPLY, BOTH = 2, 3, 4
HEADER = 2  # floats of a signal before the matrices: epoch and Δ


class ProactiveGauge(NamedTuple):
    """What the workers learned; F and V of a cell lie side by side."""

    cells: F64  # [W, r, c, 2] F and V since they were last sent
    snapshot: F64  # [W, r, c] V/F when last compared
    served: I64  # [W] messages of this window
    stabilizing: I64  # [W] 0 in START, 1 in STABILIZING
    worked: F64  # [W] cumulated time spent serving


def new_gauge(workers: int, rows: int, columns: int) -> ProactiveGauge:
    """Everybody in START."""
    return ProactiveGauge(
        np.zeros((workers, rows, columns, 2)),
        np.zeros((workers, rows, columns)),
        np.zeros(workers, np.int64),
        np.zeros(workers, np.int64),
        np.zeros(workers),
    )


@compiled
def relative_error(cells: F64, snapshot: F64, by_mass: bool) -> float:
    """η of one worker, and its snapshot brought up to date."""
    error, total = 0.0, 0.0
    for row in range(snapshot.shape[0]):
        for column in range(snapshot.shape[1]):
            count = cells[row, column, 0]
            ratio = cells[row, column, 1] / count if count > 0 else 0.0
            before = snapshot[row, column]
            weight = count if by_mass else 1.0
            error += weight * abs(before - ratio)
            total += weight * before
            snapshot[row, column] = ratio
    if total > 0:
        return error / total
    return np.inf if error > 0 else 0.0


@allocating
def _end_window(plan: Any, gauge: Any, worker: int, signal: F64) -> bool:
    """Take a snapshot or compare with it; whether the matrices are in the signal to be sent."""
    cells, snapshot = gauge.cells[worker], gauge.snapshot[worker]
    eta = relative_error(cells, snapshot, plan.by_mass[0] == 1)
    if gauge.stabilizing[worker] == 0:
        gauge.stabilizing[worker] = 1
        return False
    if eta > plan.tolerance[0]:
        return False
    signal[HEADER : HEADER + cells.size] = cells.ravel()
    cells[:] = 0.0
    snapshot[:] = 0.0
    gauge.stabilizing[worker] = 0
    return True


@inlined
def serve(
    plan: Any,
    gauge: Any,
    worker: int,
    key: np.uint64,
    cost: float,
    now: float,
    marked: bool,
    note: F64,
    signal: F64,
) -> int:
    """Learn the cost; answer a request with Δ, and send the matrices when they are stable.

    The answer compares what the scheduler expected, the marked message included, with the truth
    after that message: the worker's cumulated time, or with `backlog` the time it finished.
    """
    cells, hashes = gauge.cells, plan.hashes
    for row in range(hashes.shape[0]):
        column = universal_choice(
            key, hashes[row, 0], hashes[row, 1], hashes[row, 2], cells.shape[2]
        )
        cells[worker, row, column, 0] += 1.0
        cells[worker, row, column, 1] += cost
    worked = gauge.worked[worker] + cost
    gauge.worked[worker] = worked
    kind = NO_SIGNAL
    if marked:
        signal[0] = note[0]
        signal[1] = (now if plan.backlog[0] else worked) - note[1]
        kind = REPLY
    served = gauge.served[worker] + 1
    if served == plan.window[0]:
        served = 0
        if _end_window(plan, gauge, worker, signal):
            kind = BOTH if marked else MATRICES
    gauge.served[worker] = served
    return kind
