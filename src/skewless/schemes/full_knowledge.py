"""Full knowledge: greedy with the true costs, the ideal that learning costs is measured against.

Rivetti et al., "Proactive Online Scheduling for Shuffle Grouping in Distributed Stream Processing
Systems" (2015), section V-B. On equal workers its makespan is at most 2 − 1/W times the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, TRUE_LOAD, Scheme, check_workers
from skewless.schemes.parts.tournament import Tournament, least, set_value, tournament_of


class FullKnowledgePlan(NamedTuple):
    """How fast workers are."""

    slowness: F64  # [W] time per unit of cost


class FullKnowledgeTally(NamedTuple):
    """The cumulated work of the workers."""

    work: Tournament


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The worker that was given the least work; the weight is the message's cost."""
    worker = least(tally.work)
    set_value(tally.work, worker, tally.work.values[worker] + weight * plan.slowness[worker])
    return worker


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a worker's work becomes the true one."""
    if kind == TRUE_LOAD:
        set_value(tally.work, worker, signal[0])


@dataclass(frozen=True)
class FullKnowledge(Scheme):
    """Greedy over the cumulated work, with costs and the capacities at the start known."""

    name: ClassVar[str] = "full-knowledge"
    knows_costs: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> FullKnowledgePlan:
        """Capacities are 1 if not given."""
        check_workers(workers)
        return FullKnowledgePlan(
            np.ones(workers) if capacities is None else 1.0 / np.asarray(capacities, np.float64)
        )

    def tally(self, plan: FullKnowledgePlan, source: int) -> FullKnowledgeTally:
        """Nobody was given anything."""
        return FullKnowledgeTally(tournament_of(np.zeros(plan.slowness.size)))
