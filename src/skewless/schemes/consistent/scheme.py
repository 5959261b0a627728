"""Consistent Grouping: even virtual workers, owned by workers according to what they can do.

Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", section IV. An inner
scheme spreads the messages evenly over α virtual workers per worker. Workers watch themselves and
ask for less or for more; a source that heard one of each moves one virtual worker, so that their
number never changes. Nothing that is queued moves. What the paper leaves open is decided in
`worker` (utilisation, signals) and `source` (stale signals, what moves, settling).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, least_prime
from skewless.schemes.api import F64, I32, I64, Feedback, Scheme, check_workers
from skewless.schemes.consistent import owners as consistent_owners
from skewless.schemes.consistent.inner import INNER, InnerPlan, InnerTally
from skewless.schemes.consistent.source import (
    Asking,
    ConsistentPlan,
    ConsistentTally,
    Past,
    Waiting,
    choose,
    hear,
    mark,
)
from skewless.schemes.consistent.worker import ConsistentGauge, serve
from skewless.schemes.porc import check_epsilon, new_scans

_MOST_VIRTUAL = 1_000


class ConsistentReport(NamedTuple):
    """What the sources sent to each virtual worker, and how often they moved one."""

    loads: F64  # [V]
    moves: I64  # [1]


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
        if self.inner not in INNER:
            raise SkewlessError(
                f"consistent:inner is one of {', '.join(INNER)}, not '{self.inner}'."
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
        virtual = workers * self.virtual
        inner = InnerPlan(
            kind=np.array([INNER.index(self.inner)]),
            workers=np.array([virtual]),
            seeds=choice_seeds(seed),
            factor=np.array([1.0 + self.epsilon]),
            choices=np.array([min(2, virtual)]),
            prime=np.array([least_prime(virtual)]),
        )
        return ConsistentPlan(
            workers=np.array([workers]),
            inner=inner,
            owners=consistent_owners.deal(workers, self.virtual),
            band=np.array([self.idle, self.busy]),
            slot=np.array([self.slot]),
            settle=np.array([int(self.settle)]),
        )

    def tally(self, plan: ConsistentPlan, source: int) -> ConsistentTally:
        """The plan's owners; nothing sent or heard."""
        workers, virtual = int(plan.workers[0]), plan.owners.size
        return ConsistentTally(
            inner=InnerTally(
                loads=np.zeros(virtual),
                total=np.zeros(1),
                scans=new_scans(),
                turn=np.array([source % virtual]),
            ),
            owners=plan.owners.copy(),
            counts=np.bincount(plan.owners, minlength=workers),
            moves=np.zeros(1, np.int64),
            asking=Asking(
                clock=np.zeros(1),
                next_at=np.full(workers, plan.slot[0]),
                slots=np.zeros(workers),
            ),
            waiting=Waiting(
                moods=np.zeros(workers, np.int64),
                places=np.zeros(workers, np.int64),
                tickets=np.zeros(1, np.int64),
                asked=np.zeros(workers, np.int64),
                saturated=np.zeros(workers, np.int64),
            ),
            past=Past(
                moved_at=np.full(workers, -np.inf),
                ways=np.zeros(workers, np.int64),
                patience=np.ones(workers, np.int64),
            ),
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
        return ConsistentReport(tally.inner.loads.copy(), tally.moves.copy())

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
        clock, _, heard = tally.asking
        slots = fresh.asking.slots
        slots[: heard.size] = heard
        next_at = np.full(slots.size, clock[0] + plan.slot[0])
        return fresh._replace(
            inner=tally.inner, moves=tally.moves, asking=Asking(clock, next_at, slots)
        )
