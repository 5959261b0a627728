"""Power of two choices per message: two workers at random for every message, whatever its key.

Azar et al., "Balanced Allocations" (1999), as the Consistent Grouping paper compares it (PoTC):
nearly even, and every worker may see every key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.hashing import choice_seeds, first_choice, hash_long, second_choice
from skewless.schemes.api import F64, I64, U64, Scheme, check_workers, hear_true_load


class PotcMessagePlan(NamedTuple):
    """The hash seeds."""

    workers: I64  # [1]
    seeds: U64  # [2]


class PotcMessageTally(NamedTuple):
    """What this source sent to whom."""

    loads: F64  # [W]
    sent: U64  # [1] messages
    origin: U64  # [1] sets the random numbers of this source apart from the others'


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The less loaded of the message's two workers; of equals, the first."""
    loads = tally.loads
    workers = plan.workers[0]
    number = tally.sent[0]
    tally.sent[0] = number + np.uint64(1)
    # The message's place in the stream of its source stands in for a random number.
    message = hash_long(number, tally.origin[0])
    worker = first_choice(message, plan.seeds, workers)
    least = loads[worker]
    if workers > 1:
        second = second_choice(message, plan.seeds, workers, worker)
        load = loads[second]
        worker = second if load < least else worker
        least = min(load, least)
    loads[worker] = least + weight
    return worker


@compiled
def _origin(source: np.uint64, seed: np.uint64) -> np.uint64:
    return hash_long(source, seed)


@dataclass(frozen=True)
class PowerOfTwoChoicesPerMessage(Scheme):
    """PoTC as the Consistent Grouping paper compares it."""

    name: ClassVar[str] = "potc-message"
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PotcMessagePlan:
        """The hash seeds."""
        check_workers(workers)
        return PotcMessagePlan(np.array([workers]), choice_seeds(seed))

    def tally(self, plan: PotcMessagePlan, source: int) -> PotcMessageTally:
        """Nothing sent."""
        origin = np.uint64(_origin(np.uint64(source), plan.seeds[0]))
        return PotcMessageTally(
            np.zeros(plan.workers[0]), np.zeros(1, np.uint64), np.array([origin])
        )
