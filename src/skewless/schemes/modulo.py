"""Modulo: the identity modulo W, as stream engines do field grouping (Rivetti et al., 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, I64, Scheme, check_workers


class ModuloPlan(NamedTuple):
    """Only the number of workers."""

    workers: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> np.int64:
    """The remainder."""
    return np.int64(key % np.uint64(plan.workers[0]))


@dataclass(frozen=True)
class Modulo(Scheme):
    """Modulo: only as even as the identities are; no seed changes it."""

    name: ClassVar[str] = "modulo"
    one_worker_per_key: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> ModuloPlan:
        """Nothing to decide."""
        check_workers(workers)
        return ModuloPlan(np.array([workers]))

    def most_workers_per_key(self, workers: int) -> int:
        """One."""
        return 1
