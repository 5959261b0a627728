"""W-Choices: keys of the head may go to any worker, the others to the less loaded of two.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016). The least loaded of all workers is
found by bits, one per worker: those of the workers on the least load are set, as loads only grow a
bit is cleared with the worker's next message, and the first one left is the answer. When none is
left, a scan finds the new least load. With messages of weight 1 that load rises with every round,
at most once in W messages: O(1) amortised, and messages of the tail cost nothing extra (a
tournament of the loads was half as fast). With weights that are all different a round may serve
one message only: O(W), still exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of, trailing_zeros
from skewless.schemes.api import F64, I32, I64, TRUE_LOAD, U64
from skewless.schemes.parts.head import (
    BLOCK,
    HeadPlan,
    HeadScheme,
    hash_block,
    is_head,
    two_choices,
)
from skewless.sketch.space_saving import SpaceSaving, count, keep_sums, sums_of

Low = tuple[float, np.uint64, np.uint64]  # the floor, a word's number, its bits


class WChoicesTally(NamedTuple):
    """What this source saw and sent."""

    loads: F64  # [W]
    summary: SpaceSaving
    seen: I64  # [1] messages
    floor: F64  # [1] the least load when it was last looked for
    lowest: U64  # [⌈W/64⌉] the workers still on the floor, as bits
    word: I64  # [1] all bits of the words before it are 0
    choices: I32  # [2, BLOCK] room for `route`


@compiled
def _find_lowest(tally: Any) -> None:
    """Go to the next word with a bit, or look for the least load again if there is none."""
    loads, lowest = tally.loads, tally.lowest
    word = tally.word[0]
    while word < lowest.size and lowest[word] == 0:
        word += 1
    if word == lowest.size:
        least = least_of(loads)
        for word in range(lowest.size):
            bits = np.uint64(0)
            for bit in range(min(64, loads.size - 64 * word)):
                on_floor = loads[64 * word + bit] == least
                bits |= np.uint64(on_floor) << np.uint64(bit)
            lowest[word] = bits
        tally.floor[0] = least
        word = 0
        while lowest[word] == 0:
            word += 1
    tally.word[0] = word


@inlined
def _low_of(tally: Any) -> Low:
    """The floor, the word whose bits come next, and those bits."""
    word = np.uint64(tally.word[0])
    return tally.floor[0], word, tally.lowest[word]


@inlined
def _send(
    tally: Any, head: bool, first: np.uint64, second: np.uint64, weight: float, low: Low
) -> tuple[np.uint64, Low]:
    """The least loaded of all workers for a head key, of these two for another.

    Of equals, the first. Whether a key is head cannot be foreseen, so both are worked out without
    a branch. A loop carries `low` from one message to the next in registers.
    """
    loads, lowest = tally.loads, tally.lowest
    if low[2] == np.uint64(0) and head:  # in this order: the first can be foreseen
        _find_lowest(tally)
        low = _low_of(tally)
    floor, word, bits = low
    # The least load is carried along: loading it again from loads[worker] would chain each message
    # to the store of the one before.
    load, other = loads[first], loads[second]
    of_two, of_all = (
        second if other < load else first,
        (word << np.uint64(6)) + trailing_zeros(bits),
    )
    least = min(other, load)
    worker = of_all if head else of_two
    least = floor if head else least
    load = least + weight
    loads[worker] = load
    if load > floor:
        place, others = worker >> np.uint64(6), ~(np.uint64(1) << (worker & np.uint64(63)))
        lowest[place] &= others
        left = bits & others
        bits = left if place == word else bits
    return worker, (floor, word, bits)


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded worker for a head key, of two for another; of equals, the first."""
    summary = tally.summary
    slot, sums = count(summary, key, weight, sums_of(summary))
    keep_sums(summary, sums)
    tally.seen[0] += 1
    head = is_head(summary.counts[slot], sums, plan.theta[0])
    first, second = two_choices(key, (plan.seeds[0], plan.seeds[1]), plan.workers[0])
    worker, _ = _send(tally, head, np.uint64(first), np.uint64(second), weight, _low_of(tally))
    return int(worker)


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is hashed first, many keys at once."""
    summary, choices, theta = tally.summary, tally.choices, plan.theta[0]
    step = np.uint64(weights.size == keys.size)
    for start in range(0, keys.size, BLOCK):
        stop = min(start + BLOCK, keys.size)
        hash_block(choices, keys, start, stop, plan.seeds, plan.workers[0])
        sums, low = sums_of(summary), _low_of(tally)
        for number in range(stop - start):
            at = np.uint64(start + number)
            weight = weights[at * step]
            slot, sums = count(summary, keys[at], weight, sums)
            head = is_head(summary.counts[slot], sums, theta)
            first, second = np.uint64(choices[0, number]), np.uint64(choices[1, number])
            worker, low = _send(tally, head, first, second, weight, low)
            out[at] = worker
        keep_sums(summary, sums)
    tally.seen[0] += keys.size


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a load becomes the true one, which may lie below the floor."""
    if kind == TRUE_LOAD:
        tally.loads[worker] = signal[0]
        tally.lowest[:] = 0


@dataclass(frozen=True)
class WChoices(HeadScheme):
    """W-Choices.

    theta: share above which a key is head, 1/(5W) if not given; half_life: messages of a source
    after which old ones count half, never if not given.
    """

    name: ClassVar[str] = "w-choices"
    choose: ClassVar[Any] = staticmethod(choose)
    route: ClassVar[Any] = staticmethod(route)
    hear: ClassVar[Any] = staticmethod(hear)

    def tally(self, plan: HeadPlan, source: int) -> WChoicesTally:
        """The plan's heads and loads."""
        return WChoicesTally(
            plan.start.copy(),
            self._summary(plan),
            np.zeros(1, np.int64),
            np.zeros(1),
            np.zeros((plan.start.size + 63) // 64, np.uint64),
            np.zeros(1, np.int64),
            np.zeros((2, BLOCK), np.int32),
        )
