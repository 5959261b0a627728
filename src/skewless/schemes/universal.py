"""Universal: key grouping by a hash drawn from a 2-universal family (Rivetti et al., 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, I64, U64, Scheme, check_workers
from skewless.sketch.count_min import draw_hashes, universal_choice


class UniversalPlan(NamedTuple):
    """The function drawn."""

    workers: I64  # [1]
    hash: U64  # [3] its a, b, c


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The hash, scaled to the workers."""
    return universal_choice(key, plan.hash[0], plan.hash[1], plan.hash[2], plan.workers[0])


@dataclass(frozen=True)
class UniversalHashing(Scheme):
    """Carter and Wegman's family (see `sketch.count_min`); the seed draws the function."""

    name: ClassVar[str] = "universal"
    one_worker_per_key: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> UniversalPlan:
        """Draw the function."""
        check_workers(workers)
        return UniversalPlan(np.array([workers]), draw_hashes(1, seed)[0])

    def most_workers_per_key(self, workers: int) -> int:
        """One."""
        return 1
