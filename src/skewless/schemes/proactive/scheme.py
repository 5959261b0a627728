"""Proactive Online Shuffle Grouping: learn what messages cost, send each to who is done first.

Rivetti et al., "Proactive Online Scheduling for Shuffle Grouping in Distributed Stream Processing
Systems" (2015), section III. For stateless work whose cost depends on the key. The scheduler sends
ROUND ROBIN until every worker has sent its matrices of counts and costs (`proactive_worker`). Then
SEND ALL: the next W messages go to the workers in turn, each with a request to tell how wrong the
estimate Ĉ of that worker's cumulated work is. WAIT ALL: greedy, each message to the least Ĉ, until
all have answered; their Δ are added to Ĉ, and RUN: greedy. New matrices lead back to SEND ALL.

What the paper leaves open is decided here:

- Ĉ in a request, and so Δ, **includes the marked message**; Δ is taken when it has been served.
- SEND ALL adds estimates too. Epochs are numbered: an answer to an older request is ignored, and
  new matrices during SEND ALL start it again.
- A key's cost at a worker is V/F in the row where its F is least; if that is 0 the worker's ΣV/ΣF.
- **backlog**: the paper's Ĉ only grows, so a worker that had been idle is given work to make up for
  it. With `backlog` Ĉ is the time by which a worker will be done: never before now, compared with
  the true one every 200 messages per worker (at least 1,000 in all). What was sent after a request
  is kept as A, its sum, and B, when it would be done by a worker idle at the request: the truth T
  then gives Ĉ = max(T + A, B). Needs costs and times in one unit.
- Matrices and answers go to the source whose message was served. A source of several so learns more
  slowly, and learns the others' work through Δ.

Who has the least Ĉ is known by a tournament, not by looking at all of them for each message. The
clamp at now needs no pass either: it changes none but the chosen worker's place in the order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skewless.errors import SkewlessError
from skewless.schemes.api import F64, Feedback, Scheme, check_workers
from skewless.schemes.parts.tournament import tournament_of
from skewless.schemes.proactive.scheduler import (
    ROUND_ROBIN,
    RUN,
    ProactivePlan,
    ProactiveTally,
    choose,
    fill_cells,
    hear,
    mark,
)
from skewless.schemes.proactive.worker import HEADER, ProactiveGauge, new_gauge, serve
from skewless.sketch.count_min import draw_hashes

_SYNCHRONISE_MESSAGES = 1000
_SYNCHRONISE_PER_WORKER = 200
_STABILITIES = ("mass", "paper")


class ProactiveReport(NamedTuple):
    """The matrices that were heard, summed over the workers."""

    cells: F64  # [r, c, 2] F and V


@dataclass(frozen=True)
class ProactiveShuffleGrouping(Scheme):
    """Proactive Online Shuffle Grouping (POSG).

    stability: when costs count as stable, by `mass` (cells weighted by their messages) or as in the
    `paper` (all cells alike).
    backlog: estimate when workers will be done instead of how much they were ever given.
    window: messages of a worker between two looks at its matrices (N).
    tolerance: the relative change of costs that counts as stable (μ).
    epsilon, delta: the matrices have ⌈e/ε⌉ columns and ⌈log2(1/δ)⌉ rows.
    """

    stability: Literal["mass", "paper"] = "mass"
    backlog: bool = False
    window: int = 1024
    tolerance: float = 0.05
    epsilon: float = 0.05
    delta: float = 0.1

    name: ClassVar[str] = "proactive"
    learns_costs: ClassVar[bool] = True
    note_floats: ClassVar[int] = 2
    choose: ClassVar[Any] = staticmethod(choose)
    mark: ClassVar[Any] = staticmethod(mark)
    serve: ClassVar[Any] = staticmethod(serve)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        if self.stability not in _STABILITIES:
            raise SkewlessError(
                f"proactive:stability is one of {', '.join(_STABILITIES)}, not '{self.stability}'."
            )
        if self.window < 1:
            raise SkewlessError(f"proactive:window must be at least 1 message, not {self.window}.")
        if not self.tolerance > 0:
            raise SkewlessError(f"proactive:tolerance must be above 0, not {self.tolerance}.")
        for param in ("epsilon", "delta"):
            value = getattr(self, param)
            if not 0 < value < 1:
                raise SkewlessError(
                    f"proactive:{param} must lie between 0 and 1, both excluded, not {value}."
                )

    @property
    def rows(self) -> int:
        """Rows of a matrix."""
        return math.ceil(math.log2(1 / self.delta))

    @property
    def columns(self) -> int:
        """Columns of a matrix."""
        return math.ceil(math.e / self.epsilon)

    @property
    def signal_floats(self) -> int:  # type: ignore[override]
        """Epoch and Δ, and both matrices."""
        return HEADER + 2 * self.rows * self.columns

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> ProactivePlan:
        """Nothing is known: what workers can do is found out, not told."""
        check_workers(workers)
        every = max(_SYNCHRONISE_MESSAGES, _SYNCHRONISE_PER_WORKER * workers)
        return ProactivePlan(
            workers=np.array([workers]),
            start=np.array([seed % workers]),
            hashes=draw_hashes(self.rows, seed),
            window=np.array([self.window]),
            tolerance=np.array([self.tolerance]),
            by_mass=np.array([int(self.stability == "mass")]),
            backlog=np.array([int(self.backlog)]),
            synchronise_every=np.array([every]),
            known=np.zeros((self.rows, self.columns, 2)),
        )

    def tally(self, plan: ProactivePlan, source: int) -> ProactiveTally:
        """A scheduler in ROUND ROBIN, or in RUN if the plan knows costs.

        Source s begins s workers further on; in RUN by Ĉ that differ by less than a mean cost.
        """
        workers = int(plan.workers[0])
        turn = (plan.start + source) % plan.workers
        cells, ends, state = np.zeros((workers, *plan.known.shape)), np.zeros(workers), ROUND_ROBIN
        count, total = plan.known.sum(axis=(0, 1))
        if count > 0:
            fill_cells(cells[0], plan.known.ravel())
            cells[1:] = cells[0]
            ends = (np.arange(workers) - turn) % workers * (total / count / workers)
            state = RUN
        return ProactiveTally(
            state=np.array([state]),
            turn=turn,
            epoch=np.zeros(1, np.int64),
            sent=np.zeros(1, np.int64),
            marking=np.zeros(1, np.int64),
            unsynchronised=np.zeros(1, np.int64),
            cells=cells,
            heard=np.zeros(workers, np.int64),
            ends=tournament_of(ends),
            unanswered=np.zeros(workers, np.int64),
            deltas=np.zeros(workers),
            requests=np.zeros(workers),
            since=np.zeros(workers),
            floors=np.zeros(workers),
        )

    def gauge(self, plan: ProactivePlan) -> ProactiveGauge:
        """Workers that learned nothing yet."""
        rows, columns, _ = plan.known.shape
        return new_gauge(int(plan.workers[0]), rows, columns)

    def report(self, plan: ProactivePlan, tally: ProactiveTally) -> ProactiveReport:
        """What this source heard of costs."""
        cells = tally.cells[tally.heard == 1].copy()
        cells[..., 1] *= cells[..., 0]
        return ProactiveReport(cells.sum(axis=0))

    def merge(self, a: ProactiveReport, b: ProactiveReport) -> ProactiveReport:
        """Counts and costs add up."""
        return ProactiveReport(a.cells + b.cells)

    def replan(
        self, plan: ProactivePlan, report: ProactiveReport, feedback: Feedback
    ) -> ProactivePlan:
        """The costs are known from the start; what was known before counts half."""
        if not report.cells[..., 0].any():
            return plan
        return plan._replace(known=plan.known / 2 + report.cells)
