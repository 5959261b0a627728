"""On-line greedy: a new key goes to the least loaded of all workers, and stays there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, I64, check_workers
from skewless.schemes.parts.remembering import RememberingScheme, remember
from skewless.sketch.key_table import EMPTY, slot_of


class OnGreedyPlan(NamedTuple):
    """Only the number of workers."""

    workers: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The remembered worker, or the least loaded for a new key; of equals, the first."""
    loads, table = tally.loads, tally.table
    slot = slot_of(table.keys, table.values, key)
    worker = table.values[slot]
    if worker == EMPTY:
        worker = np.argmin(loads)
        remember(table, slot, key, worker)
    loads[worker] += weight
    return worker


@dataclass(frozen=True)
class OnlineGreedy(RememberingScheme):
    """On-greedy of the partial key grouping paper: no hash at all, a table of every key."""

    name: ClassVar[str] = "on-greedy"
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> OnGreedyPlan:
        """Nothing to decide."""
        check_workers(workers)
        return OnGreedyPlan(np.array([workers]))
