"""W-Choices: keys of the head may go to any worker, the others to the less loaded of two.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016). The least loaded of all workers is
found by a hand that walks over the workers: as loads only grow, those it passed stay above the
least load it set out from, and the next one still on it is the answer. When the hand comes to the
end, a scan finds the new least load. With messages of weight 1 that load rises with every round,
at most once in W messages: O(1) amortised, and messages of the tail cost nothing extra (a
tournament of the loads was half as fast). With weights that are all different a round may serve
one message only: O(W), still exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, I64, TRUE_LOAD
from skewless.schemes.parts.head import HeadPlan, HeadScheme, is_head, less_loaded
from skewless.sketch.space_saving import SpaceSaving, add


class WChoicesTally(NamedTuple):
    """What this source saw and sent."""

    loads: F64  # [W]
    summary: SpaceSaving
    seen: I64  # [1] messages
    floor: F64  # [1] a load that no worker is below
    hand: I64  # [1] all workers before it are above the floor


@inlined
def least_loaded(loads: F64, floor: F64, hand: I64) -> np.int64:
    """The worker with the least load; of equals, the first."""
    worker, lowest = hand[0], floor[0]
    while worker < loads.size and loads[worker] > lowest:
        worker += 1
    if worker == loads.size:
        worker, lowest = np.int64(0), loads[0]
        for w in range(1, loads.size):
            load = loads[w]
            worker = w if load < lowest else worker
            lowest = min(load, lowest)
        floor[0] = lowest
    hand[0] = worker
    return worker


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded worker for a head key, of two for another; of equals, the first."""
    summary, loads, seeds = tally.summary, tally.loads, plan.seeds
    workers = plan.workers[0]
    slot = add(summary, key, weight)
    tally.seen[0] += 1
    if is_head(summary, slot, plan.theta[0]):
        worker = least_loaded(loads, tally.floor, tally.hand)
        least = loads[worker]
    else:
        worker, least = less_loaded(loads, key, seeds, workers)
    loads[worker] = least + weight
    return worker


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a load becomes the true one, which may lie below the floor."""
    if kind == TRUE_LOAD:
        tally.loads[worker] = signal[0]
        tally.floor[0] = min(tally.floor[0], signal[0])
        tally.hand[0] = 0


@dataclass(frozen=True)
class WChoices(HeadScheme):
    """W-Choices.

    theta: share above which a key is head, 1/(5W) if not given; half_life: messages of a source
    after which old ones count half, never if not given.
    """

    name: ClassVar[str] = "w-choices"
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear)

    def tally(self, plan: HeadPlan, source: int) -> WChoicesTally:
        """The plan's heads and loads."""
        return WChoicesTally(
            plan.start.copy(),
            self._summary(plan),
            np.zeros(1, np.int64),
            np.array([plan.start.min()]),
            np.zeros(1, np.int64),
        )
