"""Consistent Grouping: even virtual workers, owned by workers according to what they can do.

Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", section IV. An inner
scheme spreads the messages evenly over α virtual workers per worker. Workers watch themselves and
ask for less or for more; a source that heard one of each moves one virtual worker, so that their
number never changes. Nothing that is queued moves. What the paper leaves open is decided here:

- **Utilisation** is the time spent serving in a slot ÷ the length of the slot. Without a backlog
  that is the paper's messages assigned ÷ (capacity · slot); with one it is 1 until all is done.
- **Signals ride on acknowledgements.** Once per slot a source marks a message to each worker; its
  acknowledgement says what the worker found in its last whole slot: less, more or enough. So each
  source hears for itself, late, and of each slot at most once.
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

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, first_choice, least_prime
from skewless.schemes import partial, porc, shuffle
from skewless.schemes.api import F64, I32, I64, NO_SIGNAL, U64, Feedback, Scheme, check_workers
from skewless.schemes.consistent import owners as consistent_owners
from skewless.schemes.porc import Scans, check_epsilon, new_scans

LESS, MORE, ENOUGH = 2, 3, 4
_PATIENCE = 256  # slots for which a worker must ask at most, with settle
_SATURATED = 0.99  # utilisation of a worker that was never idle
_MOST_VIRTUAL = 1_000
_INNER = ("porc", "key", "shuffle", "partial")
_PORC, _KEY, _SHUFFLE = 0, 1, 2
_ANYONE, _PATIENT, _SATURATED_ONLY = 0, 1, 2  # who of a queue counts


class InnerPlan(NamedTuple):
    """What any of the inner schemes reads of its plan, over the virtual workers."""

    kind: I64  # [1] place in the list of inner schemes
    workers: I64  # [1] number of virtual workers
    seeds: U64  # [2]
    factor: F64  # [1] porc: 1 + ε
    choices: I64  # [1] partial
    prime: I64  # [1] partial: least prime ≥ their number


class ConsistentPlan(NamedTuple):
    """The virtual workers, and when a worker asks for less or more."""

    workers: I64  # [1]
    inner: InnerPlan
    owners: I32  # [V] the worker of each virtual worker, V = α · W
    band: F64  # [2] idle below, busy above
    slot: F64  # [1]
    settle: I64  # [1] 1 to move less and less to and fro


class ConsistentTally(NamedTuple):
    """One source: its inner tally, its owners, and what it heard."""

    loads: F64  # [V] sent to each virtual worker
    total: F64  # [1] porc
    scans: Scans  # porc
    turn: I64  # [1] shuffle
    owners: I32  # [V]
    counts: I64  # [W] virtual workers of each worker
    clock: F64  # [1] time of the last message
    ask_at: F64  # [W] when to mark a message next
    slots: F64  # [W] number of the slot heard of last
    moods: I64  # [W] LESS or MORE while waiting in that queue, else 0
    places: I64  # [W] ticket in the queue: lower is earlier
    tickets: I64  # [1] given out
    moved_at: F64  # [W] when this source last moved one from or to the worker
    asked: I64  # [W] slots in a row in which it asked for the same
    patience: I64  # [W] slots for which it must ask, with settle
    ways: I64  # [W] LESS or MORE: what its last move gave it
    saturated: I64  # [W] 1 if it was never idle in its last slot
    moves: I64  # [1]


class ConsistentGauge(NamedTuple):
    """What the workers see of themselves."""

    busy: F64  # [W] time spent serving in this slot
    since: F64  # [W] when it began, and the one before it ended
    utilisation: F64  # [W] in the last whole slot
    slots: F64  # [W] whole slots
    verdicts: I64  # [W] LESS, MORE or ENOUGH for the last whole slot


class ConsistentReport(NamedTuple):
    """What the sources sent to each virtual worker, and how often they moved one."""

    loads: F64  # [V]
    moves: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The owner of the inner scheme's choice."""
    tally.clock[0] = now
    kind = plan.inner.kind[0]
    if kind == _PORC:
        virtual = porc.choose(plan.inner, tally, key, weight, now)
    elif kind == _KEY:
        virtual = first_choice(key, plan.inner.seeds, plan.inner.workers[0])
        tally.loads[virtual] += weight
    elif kind == _SHUFFLE:
        virtual = shuffle.choose(plan.inner, tally, key, weight, now)
        tally.loads[virtual] += weight
    else:
        virtual = partial.choose(plan.inner, tally, key, weight, now)
    return int(tally.owners[virtual])


@inlined
def mark(plan: Any, tally: Any, worker: int, note: F64) -> bool:
    """Once per slot a source asks each worker how it is."""
    now = tally.clock[0]
    if now < tally.ask_at[worker]:
        return False
    tally.ask_at[worker] = now + plan.slot[0]
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
    """Watch the time spent serving; answer a marked message once a slot is whole."""
    busy = gauge.busy[worker] + cost
    elapsed = now - gauge.since[worker]
    if elapsed >= plan.slot[0]:
        utilisation = busy / elapsed
        verdict = LESS if utilisation > plan.band[1] else ENOUGH
        gauge.verdicts[worker] = MORE if utilisation < plan.band[0] else verdict
        gauge.utilisation[worker] = utilisation
        gauge.slots[worker] += 1
        gauge.since[worker] = now
        busy = 0.0
    gauge.busy[worker] = busy
    if not marked or gauge.slots[worker] == 0:
        return NO_SIGNAL
    signal[0] = gauge.slots[worker]
    signal[1] = gauge.since[worker]
    signal[2] = gauge.utilisation[worker]
    return gauge.verdicts[worker]


@inlined
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """A worker asks for less or more, or has enough: queue it, and move what can be paired."""
    if kind not in (LESS, MORE, ENOUGH) or signal[0] <= tally.slots[worker]:
        return
    tally.slots[worker] = signal[0]
    if signal[1] < tally.moved_at[worker]:
        return
    tally.saturated[worker] = signal[2] >= _SATURATED
    if kind == ENOUGH or (kind == LESS and tally.counts[worker] == 1):
        tally.moods[worker] = 0
        return
    if tally.moods[worker] == kind:
        tally.asked[worker] += 1
        if not plan.settle[0]:
            return
    else:
        tally.moods[worker] = kind
        tally.asked[worker] = 1
        tally.places[worker] = tally.tickets[0]
        tally.tickets[0] += 1
    _pair(plan, tally, now)


@compiled
def _pair(plan: Any, tally: Any, now: float) -> None:
    """While someone waits in both queues, move one virtual worker from busy to idle.

    With settle both must have asked long enough, but a saturated worker is heard at once.
    """
    while True:
        giver = _first(tally, LESS, _SATURATED_ONLY if plan.settle[0] else _ANYONE)
        urgent = giver >= 0 and tally.saturated[giver] == 1
        if giver < 0 and plan.settle[0]:
            giver = _first(tally, LESS, _PATIENT)
        taker = _first(tally, MORE, _PATIENT if plan.settle[0] and not urgent else _ANYONE)
        if giver < 0 or taker < 0:
            return
        least = -1
        for virtual in range(tally.owners.size):
            if tally.owners[virtual] == giver and (
                least < 0 or tally.loads[virtual] < tally.loads[least]
            ):
                least = virtual
        tally.owners[least] = taker
        tally.counts[giver] -= 1
        tally.counts[taker] += 1
        tally.moves[0] += 1
        _grow_patient(tally, giver, LESS, urgent, now)
        _grow_patient(tally, taker, MORE, urgent, now)


@compiled
def _first(tally: Any, mood: int, who: int) -> int:
    """The worker longest in this queue, of those that count; −1 if there is none."""
    first = -1
    for worker in range(tally.moods.size):
        if tally.moods[worker] != mood:
            continue
        if who == _PATIENT and tally.asked[worker] < tally.patience[worker]:
            continue
        if who == _SATURATED_ONLY and not tally.saturated[worker]:
            continue
        if first < 0 or tally.places[worker] < tally.places[first]:
            first = worker
    return first


@compiled
def _grow_patient(tally: Any, worker: int, way: int, at_once: bool, now: float) -> None:
    """After a move: out of the queue, and to wait longer if the last move went the other way."""
    if not at_once and tally.ways[worker] not in (0, way):
        tally.patience[worker] = min(2 * tally.patience[worker], _PATIENCE)
    tally.ways[worker] = way
    tally.moods[worker] = 0
    tally.moved_at[worker] = now


@dataclass(frozen=True)
class ConsistentGrouping(Scheme):
    """Consistent Grouping (CG).

    virtual: virtual workers per worker to begin with (α).
    inner: how messages spread over virtual workers: porc, key, shuffle or partial.
    epsilon: porc's room above the mean load.
    slot: the least time between two signals of a worker to a source, in mean arrival intervals.
    idle, busy: the utilisation below which a worker asks for more, above which for less.
    settle: move virtual workers to and fro less and less often.
    """

    virtual: int = 10
    inner: Literal["porc", "key", "shuffle", "partial"] = "porc"
    epsilon: float = 0.01
    slot: float = 1000.0
    idle: float = 0.75
    busy: float = 0.85
    settle: bool = False

    name: ClassVar[str] = "consistent"
    signal_floats: ClassVar[int] = 3
    choose: ClassVar[Any] = staticmethod(choose)
    mark: ClassVar[Any] = staticmethod(mark)
    serve: ClassVar[Any] = staticmethod(serve)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        check_epsilon(self.name, self.epsilon)
        if not 1 <= self.virtual <= _MOST_VIRTUAL:
            raise SkewlessError(
                f"consistent needs 1 to {_MOST_VIRTUAL:,} virtual workers per worker, "
                f"not {self.virtual:,}."
            )
        if self.inner not in _INNER:
            raise SkewlessError(
                f"consistent:inner is one of {', '.join(_INNER)}, not '{self.inner}'."
            )
        if not 0 < self.slot < np.inf:
            raise SkewlessError(f"consistent:slot must be a positive time, not {self.slot}.")
        if not 0 <= self.idle <= self.busy:
            raise SkewlessError(
                "consistent needs 0 ≤ idle ≤ busy, for a worker cannot be both: "
                f"not idle={self.idle} and busy={self.busy}."
            )

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> ConsistentPlan:
        """As many virtual workers for each: what workers can do is found out, not told."""
        check_workers(workers)
        total = workers * self.virtual
        inner = InnerPlan(
            np.array([_INNER.index(self.inner)]),
            np.array([total]),
            choice_seeds(seed),
            np.array([1.0 + self.epsilon]),
            np.array([min(2, total)]),
            np.array([least_prime(total)]),
        )
        return ConsistentPlan(
            np.array([workers]),
            inner,
            consistent_owners.deal(workers, self.virtual),
            np.array([self.idle, self.busy]),
            np.array([self.slot]),
            np.array([int(self.settle)]),
        )

    def tally(self, plan: ConsistentPlan, source: int) -> ConsistentTally:
        """The plan's owners; nothing sent or heard."""
        workers = int(plan.workers[0])
        return ConsistentTally(
            loads=np.zeros(plan.owners.size),
            total=np.zeros(1),
            scans=new_scans(),
            turn=np.array([source % plan.owners.size]),
            owners=plan.owners.copy(),
            counts=np.bincount(plan.owners, minlength=workers),
            clock=np.zeros(1),
            ask_at=np.full(workers, plan.slot[0]),
            slots=np.zeros(workers),
            moods=np.zeros(workers, np.int64),
            places=np.zeros(workers, np.int64),
            tickets=np.zeros(1, np.int64),
            moved_at=np.full(workers, -np.inf),
            asked=np.zeros(workers, np.int64),
            patience=np.ones(workers, np.int64),
            ways=np.zeros(workers, np.int64),
            saturated=np.zeros(workers, np.int64),
            moves=np.zeros(1, np.int64),
        )

    def gauge(self, plan: ConsistentPlan) -> ConsistentGauge:
        """Nobody has served anything."""
        workers = int(plan.workers[0])
        return ConsistentGauge(
            busy=np.zeros(workers),
            since=np.zeros(workers),
            utilisation=np.zeros(workers),
            slots=np.zeros(workers),
            verdicts=np.zeros(workers, np.int64),
        )

    def report(self, plan: ConsistentPlan, tally: ConsistentTally) -> ConsistentReport:
        """What was sent and moved."""
        return ConsistentReport(tally.loads.copy(), tally.moves.copy())

    def merge(self, a: ConsistentReport, b: ConsistentReport) -> ConsistentReport:
        """Both add up."""
        return ConsistentReport(a.loads + b.loads, a.moves + b.moves)

    def replan(
        self, plan: ConsistentPlan, report: ConsistentReport, feedback: Feedback
    ) -> ConsistentPlan:
        """Between batches the driver moves virtual workers by the workers' busy seconds."""
        busy_s = np.asarray(feedback.busy_s, np.float64)
        owners = consistent_owners.shift(plan.owners, report.loads, busy_s, self.idle, self.busy)
        return plan._replace(owners=owners)

    def leave(self, plan: ConsistentPlan, worker: int) -> ConsistentPlan:
        """The plan once a worker has left: only its virtual workers move, and no number changes."""
        return plan._replace(owners=consistent_owners.leave(plan.owners, worker))

    def join(self, plan: ConsistentPlan, worker: int) -> ConsistentPlan:
        """The plan once a worker has joined, under a free number or the next new one."""
        workers = np.maximum(plan.workers, worker + 1)
        return plan._replace(workers=workers, owners=consistent_owners.join(plan.owners, worker))

    def resized(
        self, plan: Any, tallies: Any, gauge: Any, workers: int, seed: int, capacities: Any,
        now: float,
    ) -> tuple[ConsistentPlan, list[ConsistentTally], ConsistentGauge]:  # fmt: skip
        """Workers join or leave, and only their virtual workers move; the rest is as it was."""
        most, resize = max(int(plan.workers[0]), workers), consistent_owners.resize
        made = plan._replace(workers=np.array([most]), owners=resize(plan.owners, workers))
        seated = [self.reseat(made, t, resize(t.owners, workers)) for t in tallies]
        new = np.zeros(most - gauge.busy.size)
        wide = [np.append(part, new).astype(part.dtype) for part in gauge]
        return (
            made,
            seated,
            ConsistentGauge(*wide)._replace(since=np.append(gauge.since, new + now)),
        )

    def reseat(self, plan: ConsistentPlan, tally: ConsistentTally, owners: I32) -> ConsistentTally:
        """A source at work goes on with other owners, and hears its workers from scratch."""
        fresh = self.tally(plan._replace(owners=owners), 0)
        kept = {name: getattr(tally, name) for name in ("loads", "total", "scans", "turn", "moves")}
        asks = np.full(fresh.ask_at.size, tally.clock[0] + plan.slot[0])
        slots = np.zeros(fresh.slots.size)
        slots[: tally.slots.size] = tally.slots
        return fresh._replace(**kept, clock=tally.clock, ask_at=asks, slots=slots)
