"""SIA: single instance allocation, the worst balance there is (Rivetti et al., section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from skewless.hashing import choice_seeds
from skewless.schemes.api import F64, RouteTable, Scheme, check_workers
from skewless.schemes.key import KeyPlan


@njit(cache=True, inline="always")
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The first worker."""
    return 0


@dataclass(frozen=True)
class SingleInstanceAllocation(Scheme):
    """Everything to one worker: 100 · (W − 1) per cent of imbalance."""

    name: ClassVar[str] = "sia"
    one_worker_per_key: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> KeyPlan:
        """Nothing to decide."""
        check_workers(workers)
        return KeyPlan(np.array([workers]), choice_seeds(seed), np.array([seed]))

    def table(self, plan: KeyPlan) -> RouteTable:
        """One bucket, the first worker's."""
        return RouteTable(
            plan.seeds,
            int(plan.seed[0]),
            np.zeros(1, np.int32),
            np.empty(0, np.uint64),
            np.zeros(1, np.int64),
            np.empty(0, np.int32),
        )

    def most_workers_per_key(self, workers: int) -> int:
        """One."""
        return 1
