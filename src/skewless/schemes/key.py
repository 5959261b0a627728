"""Key grouping: every message of a key goes to the one worker that its hash names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.hashing import choice_seeds, first_choice
from skewless.schemes.api import F64, I64, U64, RouteTable, Scheme, check_workers


class KeyPlan(NamedTuple):
    """Nothing but the hash."""

    workers: I64  # [1]
    seeds: U64  # [2]
    seed: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The first choice."""
    return first_choice(key, plan.seeds, plan.workers[0])


@dataclass(frozen=True)
class KeyGrouping(Scheme):
    """Key grouping (hash partitioning), the baseline that all five papers set out from."""

    name: ClassVar[str] = "key"
    one_worker_per_key: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> KeyPlan:
        """The hash seeds."""
        check_workers(workers)
        return KeyPlan(np.array([workers]), choice_seeds(seed), np.array([seed]))

    def table(self, plan: KeyPlan) -> RouteTable:
        """One bucket per worker, no heads."""
        return RouteTable(
            plan.seeds,
            int(plan.seed[0]),
            np.arange(plan.workers[0], dtype=np.int32),
            np.empty(0, np.uint64),
            np.zeros(1, np.int64),
            np.empty(0, np.int32),
        )

    def most_workers_per_key(self, workers: int) -> int:
        """One."""
        return 1
