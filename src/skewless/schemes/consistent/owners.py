"""Who owns which virtual worker: deal them out, and move as few as possible later.

An owners array holds, for each virtual worker, its worker. Its length never changes.
"""

from __future__ import annotations

import numpy as np

from skewless.errors import SkewlessError
from skewless.schemes.api import F64, I32, I64


def deal(workers: int, virtual: int) -> I32:
    """As many virtual workers for each worker, in turn."""
    return (np.arange(workers * virtual) % workers).astype(np.int32)


def leave(owners: I32, worker: int) -> I32:
    """The owners once a worker has left: its virtual workers go round the others, and only they.

    Each goes to the remaining owner that has fewest; of equals, the lowest number.
    """
    counts = np.bincount(owners).astype(np.float64)
    if worker >= counts.size or not counts[worker]:
        raise SkewlessError(f"Worker {worker} owns no virtual worker, so it cannot leave.")
    counts[counts == 0] = np.inf
    counts[worker] = np.inf
    if np.isinf(counts).all():
        raise SkewlessError(f"Worker {worker} is the last one, so it cannot leave.")
    after = owners.copy()
    for v in np.flatnonzero(owners == worker):
        taker = int(counts.argmin())
        after[v] = taker
        counts[taker] += 1
    return after


def join(owners: I32, worker: int) -> I32:
    """The owners once a worker has joined with an equal share: only what it takes over moves.

    It takes one at a time from the worker that has most; of equals, the lowest number.
    """
    counts = np.bincount(owners, minlength=worker + 1)
    if counts[worker]:
        raise SkewlessError(f"Worker {worker} owns virtual workers already, so it cannot join.")
    after = owners.copy()
    for _ in range(owners.size // (np.count_nonzero(counts) + 1)):
        giver = int(counts.argmax())
        if counts[giver] <= 1:
            break
        after[np.flatnonzero(after == giver)[-1]] = worker
        counts[giver] -= 1
        counts[worker] += 1
    if not counts[worker]:
        raise SkewlessError(
            f"There are {owners.size} virtual workers for as many workers: "
            "nothing is left for one that joins; give each worker more virtual ones."
        )
    return after


def resize(owners: I32, workers: int) -> I32:
    """The owners once the workers are 0 … workers − 1: the highest leave, or new ones join."""
    there = int(owners.max()) + 1
    for worker in range(workers, there):
        owners = leave(owners, worker)
    for worker in range(there, workers):
        owners = join(owners, worker)
    return owners


def shift(owners: I32, loads: F64, busy_s: F64, idle: float, busy: float) -> I32:
    """The owners for the next batch, given each worker's busy seconds in the last one.

    A batch ends when its slowest worker does, so utilisation is taken relative to the mean, which
    counts as the middle of the band. Seconds per virtual worker predict what a move does; one moves
    from the busiest to the idlest while they are outside the band and the taker stays below what
    the giver was, by more than half of the band's width: else measured seconds, which are never the
    same twice, would move virtual workers to and fro between equals. The least loaded one moves;
    each worker keeps at least one.
    """
    workers = busy_s.size
    counts: I64 = np.bincount(owners, minlength=workers)
    here = counts > 0
    if not busy_s[here].any():
        return owners
    seen = here & (busy_s > 0)
    each_s = np.full(workers, busy_s[seen].sum() / counts[seen].sum())
    each_s[seen] = busy_s[seen] / counts[seen]
    after = owners.copy()
    for _ in range(owners.size):
        scale = (idle + busy) / 2 / (each_s * counts)[here].mean()
        used = each_s * counts * scale
        giver = int(np.where(here & (counts > 1), used, -np.inf).argmax())
        taker = int(np.where(here, used, np.inf).argmin())
        outside = used[giver] > busy or used[taker] < idle
        gain = used[giver] - (used[taker] + each_s[taker] * scale)
        if not outside or gain <= (busy - idle) / 2:
            break
        theirs = np.flatnonzero(after == giver)
        after[theirs[loads[theirs].argmin()]] = taker
        counts[giver] -= 1
        counts[taker] += 1
    return after
