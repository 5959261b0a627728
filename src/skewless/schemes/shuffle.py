"""Shuffle grouping: round robin over the workers, whatever the key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, I64, Scheme, check_workers


class ShufflePlan(NamedTuple):
    """Where the first source starts."""

    workers: I64  # [1]
    start: I64  # [1]


class ShuffleTally(NamedTuple):
    """Whose turn it is."""

    turn: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The next worker in turn."""
    worker = tally.turn[0]
    following = worker + 1
    tally.turn[0] = following if following < plan.workers[0] else 0
    return worker


@dataclass(frozen=True)
class ShuffleGrouping(Scheme):
    """Shuffle grouping: perfectly even, and every worker may see every key.

    Each source starts at an offset of its own, so that sources do not march in step.
    """

    name: ClassVar[str] = "shuffle"
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> ShufflePlan:
        """Start anywhere, by the seed."""
        check_workers(workers)
        return ShufflePlan(np.array([workers]), np.array([seed % workers]))

    def tally(self, plan: ShufflePlan, source: int) -> ShuffleTally:
        """Source s starts s workers further on."""
        return ShuffleTally((plan.start + source) % plan.workers)
