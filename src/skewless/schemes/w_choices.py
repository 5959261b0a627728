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
from skewless.compiled.bits import least_of, order_of, pick, trailing_zeros
from skewless.schemes.api import F64, I64, TRUE_LOAD, U64
from skewless.schemes.parts.head import (
    BLOCK,
    Block,
    HeadPlan,
    HeadScheme,
    apart,
    count_block,
    is_head,
    pair_of,
)
from skewless.sketch.space_saving import SpaceSaving, count

Lows = tuple[U64, F64, I64]  # of the tally: lowest, floor, word
Low = tuple[float, np.uint64, np.uint64]  # the floor, a word's number, its bits


class WChoicesTally(NamedTuple):
    """What this source saw and sent."""

    loads: F64  # [W]
    summary: SpaceSaving
    seen: I64  # [1] messages
    floor: F64  # [1] the least load when it was last looked for
    lowest: U64  # [⌈W/64⌉] the workers still on the floor, as bits
    word: I64  # [1] all bits of the words before it are 0
    pairs: U64  # [capacity] both choices of each counter's key
    block: Block


# Helpers are handed what they need, not the tally: numba takes a tuple apart, array by array, for
# every call, and puts it together again inside, which is more code than theirs.


@compiled
def _find_lowest(loads: F64, lowest: U64, floor: F64, word: I64) -> None:
    """Go to the next word with a bit, or look for the least load again if there is none."""
    at = word[0]
    while at < lowest.size and lowest[at] == 0:
        at += 1
    if at == lowest.size:
        least = least_of(loads)
        for number in range(lowest.size):
            bits = np.uint64(0)
            for bit in range(min(64, loads.size - 64 * number)):
                on_floor = loads[64 * number + bit] == least
                bits |= np.uint64(on_floor) << np.uint64(bit)
            lowest[number] = bits
        floor[0] = least
        at = 0
        while lowest[at] == 0:
            at += 1
    word[0] = at


@inlined
def _low_of(lowest: U64, floor: F64, word: I64) -> Low:
    """The floor, the word whose bits come next, and those bits."""
    at = np.uint64(word[0])
    return floor[0], at, lowest[at]


@inlined
def _bit_of(worker: np.uint64) -> np.uint64:
    return np.uint64(1) << (worker & np.uint64(63))


@inlined
def _bit_in(word: np.uint64, worker: np.uint64) -> np.uint64:
    """The worker's bit if it lies in this word."""
    return pick(worker >> np.uint64(6) == word, _bit_of(worker), np.uint64(0))


@inlined
def _send(
    loads: F64, lows: Lows, head: bool, pair: np.uint64, weight: float, low: Low
) -> tuple[np.uint64, Low]:
    """The least loaded of all workers for a head key, of a pair for another.

    Of equals, the first. Whether a key is head cannot be foreseen, so both are worked out without
    a branch. A loop carries `low` from one message to the next in registers.
    """
    lowest, (first, second) = lows[0], apart(pair)
    if low[2] == np.uint64(0) and head:  # in this order: the first can be foreseen
        _find_lowest(loads, lows[0], lows[1], lows[2])
        low = _low_of(lows[0], lows[1], lows[2])
    floor, word, bits = low
    load, other = order_of(loads[first]), order_of(loads[second])
    less = other < load
    of_all = (word << np.uint64(6)) + trailing_zeros(bits)
    worker = pick(head, of_all, pick(less, second, first))
    # The least load is carried along: loading it again from loads[worker] would chain each message
    # to the store of the one before.
    load = np.int64(pick(head, order_of(floor), pick(less, other, load))).view(np.float64) + weight
    loads[worker] = load
    if load > floor:
        lowest[worker >> np.uint64(6)] &= ~_bit_of(worker)
        of_two = pick(less, _bit_in(word, second), _bit_in(word, first))
        bits = pick(head, bits & (bits - np.uint64(1)), bits & ~of_two)
    return worker, (floor, word, bits)


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded worker for a head key, of two for another; of equals, the first."""
    summary, lows = tally.summary, (tally.lowest, tally.floor, tally.word)
    found = count(summary, key, weight)
    known, slot = found >= 0, np.uint64(found if found >= 0 else 0)
    pair = pair_of(key, (plan.seeds[0], plan.seeds[1]), plan.workers[0])
    if known:
        tally.pairs[slot] = pair
    tally.seen[0] += 1
    often = summary.counts[slot] if known else 0.0
    head = is_head(often, summary.total[0], summary.gain[0], plan.theta[0])
    low = _low_of(lows[0], lows[1], lows[2])
    worker, _ = _send(tally.loads, lows, head, pair, weight, low)
    return int(worker)


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is counted first, many messages at once."""
    summary, block, pairs, loads = tally.summary, tally.block, tally.pairs, tally.loads
    seeds, workers = (plan.seeds[0], plan.seeds[1]), plan.workers[0]
    theta = plan.theta[0]
    lows = tally.lowest, tally.floor, tally.word
    low = _low_of(lows[0], lows[1], lows[2])
    step, size, start = np.uint64(weights.size == keys.size), np.uint64(keys.size), np.uint64(0)
    while start < size:
        stop = start + np.uint64(BLOCK)
        span = start, stop if stop < size else size
        counted = count_block(seeds, workers, theta, summary, pairs, block, keys, weights, span)
        for number in range(counted):
            at = start + number
            head, pair = block.heads[number], block.pairs[number]
            worker, low = _send(loads, lows, head, pair, weights[at * step], low)
            out[at] = worker
        start += counted
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
        summary, pairs = self._summary(plan)
        return WChoicesTally(
            plan.start.copy(),
            summary,
            np.zeros(1, np.int64),
            np.zeros(1),
            np.zeros((plan.start.size + 63) // 64, np.uint64),
            np.zeros(1, np.int64),
            pairs,
            Block.empty(),
        )
