"""The scheduler of Proactive Online Shuffle Grouping: its four states, and late answers.

What each state does, and what the paper leaves open, is told in `proactive`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.schemes.api import F64, I64, U64
from skewless.schemes.parts.tournament import Tournament, least, set_value
from skewless.schemes.proactive.worker import BOTH, HEADER, MATRICES, REPLY
from skewless.sketch.count_min import universal_choice

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = 0, 1, 2, 3


class ProactivePlan(NamedTuple):
    """The sizes, and the costs known beforehand."""

    workers: I64  # [1]
    start: I64  # [1] where the first source's round robin begins
    hashes: U64  # [r, 3] of the rows of all matrices
    window: I64  # [1] N
    tolerance: F64  # [1] μ
    by_mass: I64  # [1] 1 if η weights cells by F
    backlog: I64  # [1] 1 if Ĉ is a time
    synchronise_every: I64  # [1] messages, with backlog
    known: F64  # [r, c, 2] F and V of all workers together; all 0 if nothing is known


class ProactiveTally(NamedTuple):
    """The scheduler."""

    state: I64  # [1]
    turn: I64  # [1] of the round robin
    epoch: I64  # [1]
    sent: I64  # [1] requests of this epoch sent
    marking: I64  # [1] 1 if a request rides on the message last chosen for
    unsynchronised: I64  # [1] messages since the requests, with backlog
    cells: F64  # [W, r, c, 2] F and V/F; where F is 0 the worker's mean cost
    heard: I64  # [W] 1 if the worker sent its matrices
    ends: Tournament  # Ĉ
    unanswered: I64  # [W] 1 if its answer of this epoch is out
    deltas: F64  # [W] answers of this epoch
    requests: F64  # [W] Ĉ in its request
    since: F64  # [W] A: estimates sent after it, with backlog
    floors: F64  # [W] B: when they would end had it been idle then, with backlog


@inlined
def _estimate(plan: Any, tally: Any, worker: int, key: np.uint64) -> float:
    """What the key costs at the worker."""
    cells, hashes = tally.cells, plan.hashes
    fewest, cost = np.inf, 0.0
    for row in range(hashes.shape[0]):
        column = universal_choice(
            key, hashes[row, 0], hashes[row, 1], hashes[row, 2], cells.shape[2]
        )
        count = cells[worker, row, column, 0]
        cost = cells[worker, row, column, 1] if count < fewest else cost
        fewest = min(count, fewest)
    return cost


@allocating
def estimates(plan: Any, tally: Any, keys: U64) -> F64:
    """What each key costs at the first worker: a host that sees many at once may order them."""
    out = np.empty(keys.size)
    for i in range(keys.size):
        out[i] = _estimate(plan, tally, 0, keys[i])
    return out


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The next worker in turn, or once costs are known the one with the least Ĉ."""
    state, workers = tally.state[0], plan.workers[0]
    tally.marking[0] = state == SEND_ALL
    if state == ROUND_ROBIN:
        worker = tally.turn[0]
        following = worker + 1
        tally.turn[0] = following if following < workers else 0
    else:
        if state == SEND_ALL:
            worker = tally.sent[0]
            tally.sent[0] = worker + 1
            if worker + 1 == workers:
                tally.state[0] = WAIT_ALL
        else:
            worker = least(tally.ends)
        cost = _estimate(plan, tally, worker, key)
        end = tally.ends.values[worker]
        if plan.backlog[0]:
            end = max(end, now)
            tally.since[worker] += cost
            tally.floors[worker] = max(tally.floors[worker], now) + cost
            tally.unsynchronised[0] += 1
            if state == RUN and tally.unsynchronised[0] >= plan.synchronise_every[0]:
                _begin_epoch(tally)
        set_value(tally.ends, worker, end + cost)
    return worker


@inlined
def mark(plan: Any, tally: Any, worker: int, note: F64) -> bool:
    """In SEND ALL the message carries the epoch and Ĉ, with the message's own estimate."""
    if not tally.marking[0]:
        return False
    end = tally.ends.values[worker]
    tally.requests[worker] = end
    tally.since[worker] = 0.0
    tally.floors[worker] = -np.inf
    note[0] = tally.epoch[0]
    note[1] = end
    return True


@compiled
def _begin_epoch(tally: Any) -> None:
    """To SEND ALL; answers to earlier requests no longer count."""
    tally.state[0] = SEND_ALL
    tally.epoch[0] += 1
    tally.sent[0] = 0
    tally.unanswered[:] = 1
    tally.unsynchronised[0] = 0


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """An answer, matrices, or both arrive."""
    if kind in (REPLY, BOTH):
        _hear_reply(plan, tally, worker, signal)
    if kind in (MATRICES, BOTH):
        _hear_matrices(tally, worker, signal)


@compiled
def _hear_reply(plan: Any, tally: Any, worker: int, signal: F64) -> None:
    """Keep Δ if it is of this epoch; when all have come, correct Ĉ and run."""
    if signal[0] != tally.epoch[0] or not tally.unanswered[worker]:
        return
    tally.deltas[worker] = signal[1]
    tally.unanswered[worker] = 0
    if tally.unanswered.sum():
        return
    for w in range(tally.deltas.size):
        if plan.backlog[0]:
            truth = tally.requests[w] + tally.deltas[w]
            end = max(truth + tally.since[w], tally.floors[w])
        else:
            end = tally.ends.values[w] + tally.deltas[w]
        set_value(tally.ends, w, end)
    tally.state[0] = RUN


@compiled
def _hear_matrices(tally: Any, worker: int, signal: F64) -> None:
    """Costs of a worker; once those of all are known, requests go out."""
    fill_cells(tally.cells[worker], signal[HEADER:])
    tally.heard[worker] = 1
    if tally.state[0] != ROUND_ROBIN or tally.heard.sum() == tally.heard.size:
        _begin_epoch(tally)


@compiled
def fill_cells(cells: F64, matrices: F64) -> None:
    """F and V, flat, become F and V/F; where F is 0 the mean cost."""
    count, total = 0.0, 0.0
    for i in range(cells.size // 2):
        count += matrices[2 * i]
        total += matrices[2 * i + 1]
    mean = total / count
    flat = cells.reshape(-1, 2)
    for i in range(flat.shape[0]):
        hits = matrices[2 * i]
        flat[i, 0] = hits
        flat[i, 1] = matrices[2 * i + 1] / hits if hits > 0 else mean
