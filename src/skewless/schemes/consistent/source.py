"""A source of Consistent Grouping: hears its workers, and moves virtual workers between them.

- **Stale signals** are dropped: the newest word of a worker replaces its older one, keeping its
  place in the queue if it is the same; and a slot that ended before this source's last move from or
  to that worker says nothing.
- **The virtual worker that moves** is the one to which this source sent least, of equals the first.
- A worker keeps at least one virtual worker: otherwise nothing could carry its signals.
- **settle**: a weak worker may be idle with n virtual workers and busy with n + 1, and then moves
  never stop. With `settle` a worker whose moves change direction must ask longer each time: twice
  as many slots in a row as before, up to 256. One that was never idle in a slot is heard at once,
  and then any idle worker may take over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, I32, I64
from skewless.schemes.consistent.inner import InnerPlan, InnerTally, choose_virtual
from skewless.schemes.consistent.worker import ENOUGH, LESS, MORE

_PATIENCE = 256  # slots for which a worker must ask at most, with settle
_SATURATED = 0.99  # utilisation of a worker that was never idle
_ANYONE, _PATIENT, _SATURATED_ONLY = 0, 1, 2  # who of a queue counts


class ConsistentPlan(NamedTuple):
    """The virtual workers, and when a worker asks for less or more."""

    workers: I64  # [1]
    inner: InnerPlan
    owners: I32  # [V] the worker of each virtual worker, V = α · W
    band: F64  # [2] idle below, busy above
    slot: F64  # [1]
    settle: I64  # [1] 1 to move less and less to and fro


class Asking(NamedTuple):
    """When this source asks its workers how they are, and what it has heard of."""

    clock: F64  # [1] time of the last message
    next_at: F64  # [W] when to mark a message next
    slots: F64  # [W] number of the slot heard of last


class Waiting(NamedTuple):
    """The workers that asked for less or for more, in two queues."""

    moods: I64  # [W] LESS or MORE while waiting in that queue, else 0
    places: I64  # [W] ticket in the queue: lower is earlier
    tickets: I64  # [1] given out
    asked: I64  # [W] slots in a row in which it asked for the same
    saturated: I64  # [W] 1 if it was never idle in its last slot


class Past(NamedTuple):
    """What earlier moves from or to each worker have to say about the next one."""

    moved_at: F64  # [W] when this source last moved one
    ways: I64  # [W] LESS or MORE: what its last move gave it
    patience: I64  # [W] slots for which it must ask, with settle


class ConsistentTally(NamedTuple):
    """One source: what it sent, the owners as it sees them, and what it heard."""

    inner: InnerTally
    owners: I32  # [V]
    counts: I64  # [W] virtual workers of each worker
    moves: I64  # [1]
    asking: Asking
    waiting: Waiting
    past: Past


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The owner of the inner scheme's choice."""
    tally.asking.clock[0] = now
    return int(tally.owners[choose_virtual(plan.inner, tally.inner, key, weight, now)])


@inlined
def mark(plan: Any, tally: Any, worker: int, note: F64) -> bool:
    """Once per slot a source asks each worker how it is."""
    asking = tally.asking
    now = asking.clock[0]
    if now < asking.next_at[worker]:
        return False
    asking.next_at[worker] = now + plan.slot[0]
    return True


@inlined
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """A worker asks for less or more, or has enough: queue it, and move what can be paired."""
    slots, waiting = tally.asking.slots, tally.waiting
    if kind not in (LESS, MORE, ENOUGH) or signal[0] <= slots[worker]:
        return
    slots[worker] = signal[0]
    if signal[1] < tally.past.moved_at[worker]:
        return
    waiting.saturated[worker] = signal[2] >= _SATURATED
    if kind == ENOUGH or (kind == LESS and tally.counts[worker] == 1):
        waiting.moods[worker] = 0
        return
    if waiting.moods[worker] == kind:
        waiting.asked[worker] += 1
        if not plan.settle[0]:
            return
    else:
        waiting.moods[worker] = kind
        waiting.asked[worker] = 1
        waiting.places[worker] = waiting.tickets[0]
        waiting.tickets[0] += 1
    _pair(plan, tally, now)


@compiled
def _pair(plan: Any, tally: Any, now: float) -> None:
    """While someone waits in both queues, move one virtual worker from busy to idle.

    With settle both must have asked long enough, but a saturated worker is heard at once.
    """
    settle = plan.settle[0]
    while True:
        giver = _first(tally, LESS, _SATURATED_ONLY if settle else _ANYONE)
        urgent = giver >= 0 and tally.waiting.saturated[giver] == 1
        if giver < 0 and settle:
            giver = _first(tally, LESS, _PATIENT)
        taker = _first(tally, MORE, _PATIENT if settle and not urgent else _ANYONE)
        if giver < 0 or taker < 0:
            return
        tally.owners[_least_loaded(tally, giver)] = taker
        tally.counts[giver] -= 1
        tally.counts[taker] += 1
        tally.moves[0] += 1
        _moved(tally, giver, LESS, urgent, now)
        _moved(tally, taker, MORE, urgent, now)


@compiled
def _first(tally: Any, mood: int, who: int) -> int:
    """The worker longest in this queue, of those that count; −1 if there is none."""
    moods, places, _, asked, saturated = tally.waiting
    first = -1
    for worker in range(moods.size):
        if moods[worker] != mood:
            continue
        if who == _PATIENT and asked[worker] < tally.past.patience[worker]:
            continue
        if who == _SATURATED_ONLY and not saturated[worker]:
            continue
        if first < 0 or places[worker] < places[first]:
            first = worker
    return first


@inlined
def _least_loaded(tally: Any, worker: int) -> int:
    """Of a worker's virtual workers the one to which least was sent; of equals, the first."""
    owners, loads = tally.owners, tally.inner.loads
    least = -1
    for virtual in range(owners.size):
        if owners[virtual] == worker and (least < 0 or loads[virtual] < loads[least]):
            least = virtual
    return least


@compiled
def _moved(tally: Any, worker: int, way: int, at_once: bool, now: float) -> None:
    """Out of the queue, and to wait longer next time if the last move went the other way."""
    moved_at, ways, patience = tally.past
    if not at_once and ways[worker] not in (0, way):
        patience[worker] = min(2 * patience[worker], _PATIENCE)
    ways[worker] = way
    moved_at[worker] = now
    tally.waiting.moods[worker] = 0
