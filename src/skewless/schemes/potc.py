"""Static power of two choices: the less loaded of two workers, remembered for the key's life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.hashing import choice_seeds, first_choice, second_choice
from skewless.schemes.api import F64, I64, U64, check_workers
from skewless.schemes.parts.remembering import RememberingScheme, remember
from skewless.sketch.key_table import EMPTY, slot_of


class PotcPlan(NamedTuple):
    """The hash seeds."""

    workers: I64  # [1]
    seeds: U64  # [2]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The remembered worker, or the less loaded of two for a new key; of equals, the first."""
    loads, table = tally.loads, tally.table
    slot = slot_of(table.keys, table.values, key)
    worker = table.values[slot]
    if worker == EMPTY:
        workers = plan.workers[0]
        worker = first_choice(key, plan.seeds, workers)
        if workers > 1:
            second = second_choice(key, plan.seeds, workers, worker)
            if loads[second] < loads[worker]:
                worker = second
        remember(table, slot, key, worker)
    loads[worker] += weight
    return worker


@dataclass(frozen=True)
class StaticPowerOfTwoChoices(RememberingScheme):
    """PoTC as the partial key grouping paper compares it: two choices, taken once per key."""

    name: ClassVar[str] = "potc"
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PotcPlan:
        """The hash seeds."""
        check_workers(workers)
        return PotcPlan(np.array([workers]), choice_seeds(seed))

    def most_workers_per_key(self, workers: int) -> int:
        """Two: each source remembers one of the same two."""
        return min(2, workers)
