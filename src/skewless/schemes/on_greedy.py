"""On-line greedy: a new key goes to the least loaded of all workers, and stays there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit

from skewless.schemes.api import F64, I64, Scheme, check_workers, hear_true_load
from skewless.sketch.key_table import EMPTY, KeyTable, key_table, reserve, slot_of


class OnGreedyPlan(NamedTuple):
    """Only the number of workers."""

    workers: I64  # [1]


class OnGreedyTally(NamedTuple):
    """What this source sent to whom, and the worker of every key it saw."""

    loads: F64  # [W]
    table: KeyTable  # key -> worker


@njit(cache=True, inline="always")
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The remembered worker, or the least loaded for a new key; of equals, the first."""
    loads, table = tally.loads, tally.table
    slot = slot_of(table.keys, table.values, key)
    worker = table.values[slot]
    if worker == EMPTY:
        worker = np.argmin(loads)
        table.keys[slot] = key
        table.values[slot] = worker
        table.used[0] += 1
    loads[worker] += weight
    return worker


@dataclass(frozen=True)
class OnlineGreedy(Scheme):
    """On-greedy of the partial key grouping paper: no hash at all, a table of every key."""

    name: ClassVar[str] = "on-greedy"
    coordinated: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> OnGreedyPlan:
        """Nothing to decide."""
        check_workers(workers)
        return OnGreedyPlan(np.array([workers]))

    def tally(self, plan: OnGreedyPlan, source: int) -> OnGreedyTally:
        """No loads, no keys."""
        return OnGreedyTally(np.zeros(plan.workers[0]), key_table())

    def reserve(self, tally: OnGreedyTally, messages: int) -> OnGreedyTally:
        """Every message may bring a new key."""
        return tally._replace(table=reserve(tally.table, messages))
