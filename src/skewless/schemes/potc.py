"""Static power of two choices: the less loaded of two workers, remembered for the key's life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit

from skewless.hashing import choice_seeds, first_choice, second_choice
from skewless.schemes.api import F64, I64, U64, Scheme, check_workers, hear_true_load
from skewless.sketch.key_table import EMPTY, KeyTable, key_table, reserve, slot_of


class PotcPlan(NamedTuple):
    """The hash seeds."""

    workers: I64  # [1]
    seeds: U64  # [2]


class RememberingTally(NamedTuple):
    """What this source sent to whom, and the worker of every key it saw."""

    loads: F64  # [W]
    table: KeyTable  # key -> worker


@njit(cache=True, inline="always")
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
        table.keys[slot] = key
        table.values[slot] = worker
        table.used[0] += 1
    loads[worker] += weight
    return worker


@dataclass(frozen=True)
class StaticPowerOfTwoChoices(Scheme):
    """PoTC as the partial key grouping paper compares it: two choices, taken once per key."""

    name: ClassVar[str] = "potc"
    coordinated: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PotcPlan:
        """The hash seeds."""
        check_workers(workers)
        return PotcPlan(np.array([workers]), choice_seeds(seed))

    def tally(self, plan: PotcPlan, source: int) -> RememberingTally:
        """No loads, no keys."""
        return RememberingTally(np.zeros(plan.workers[0]), key_table())

    def reserve(self, tally: RememberingTally, messages: int) -> RememberingTally:
        """Every message may bring a new key."""
        return tally._replace(table=reserve(tally.table, messages))

    def most_workers_per_key(self, workers: int) -> int:
        """Two: each source remembers one of the same two."""
        return min(2, workers)
