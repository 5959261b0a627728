"""What D-Choices and W-Choices share: which keys are head, and how plans remember them.

Nasir, De Francisci Morales, Kourtellis, Serafini: "When Two Choices Are Not Enough" (ICDE 2016).
Each source keeps a SpaceSaving summary; a key is head when its estimated share exceeds
θ = 1/(5W). The summary is accurate to θ/4, so its size follows the number of workers: one that is
smaller than 1/θ would take every message for head. A key needs `FEWEST_MESSAGES` of its own too,
or each of the first 1/θ messages of a stream would make its key head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import pick
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, least_prime, scale
from skewless.schemes.api import F64, I32, I64, U64, Feedback, Scheme, check_workers
from skewless.schemes.parts.sharing import shared_out
from skewless.sketch.space_saving import (
    GAIN_LIMIT,
    SpaceSaving,
    Summary,
    capacity_for,
    count_other,
    home_of,
    merge,
    preload,
    renormalise,
    space_saving,
    summarise,
)

FEWEST_MESSAGES = 4.0
BLOCK = 256  # messages are counted at a time, at most
_ANY = np.int32(0)  # a counter to read where a key has none
Flags = npt.NDArray[np.bool_]
Seeds = tuple[np.uint64, np.uint64]  # of two choices
Span = tuple[np.uint64, np.uint64]  # the first message; the one after the last


class HeadPlan(NamedTuple):
    """The hash seeds, the thresholds, and what earlier batches left."""

    workers: I64  # [1]
    prime: I64  # [1] least prime ≥ workers
    seeds: U64  # [2]
    theta: F64  # [1] share above which a key is head
    epsilon: F64  # [1] imbalance aimed at
    refresh: I64  # [1] messages between two computations of the number of choices
    start: F64  # [W] a source's share of what earlier batches left uneven
    head_keys: U64  # [h] keys that a fresh source knows already
    head_counts: F64  # [h] how often it takes them to have come
    head_total: F64  # [1] out of how many messages
    sources: F64 = np.zeros(1)  # [1] that `start` was divided by; 0 = nothing was reported yet


class Block(NamedTuple):
    """Messages that are counted together, before any of them is sent."""

    slots: I32  # [BLOCK] the counter of each message's key
    pairs: U64  # [BLOCK] both choices
    heads: Flags  # [BLOCK] whether its key is head
    others: I32  # [BLOCK] the messages that are counted last
    sums: F64  # [2, BLOCK] the gain before each of those, and the total with it

    @classmethod
    def empty(cls) -> Block:
        """Room for messages."""
        return cls(
            np.zeros(BLOCK, np.int32),
            np.zeros(BLOCK, np.uint64),
            np.zeros(BLOCK, np.bool_),
            np.zeros(BLOCK, np.int32),
            np.zeros((2, BLOCK)),
        )


class HeadReport(NamedTuple):
    """What the sources saw and sent, beyond what they started from."""

    summary: Summary
    loads: F64  # [W]
    sources: I64  # [1]


@inlined
def is_head(count: float, total: float, gain: float, theta: float) -> bool:
    """Whether a key with this count is head, given the summary's total and gain: O(1)."""
    # An `and` would be a branch, which the processor cannot foresee.
    return (count > theta * total) & (count >= FEWEST_MESSAGES * gain)


@inlined
def two_choices(key: np.uint64, seeds: Seeds, workers: np.int64) -> tuple[np.int64, np.int64]:
    """The choices of a tail key; of one worker, it twice."""
    first = scale(hash_long(key, seeds[0]), np.uint64(workers))
    second = scale(hash_long(key, seeds[1]), np.uint64(workers - 1))
    second += np.int64(second >= first)
    return first, pick(second < workers, second, workers - 1)


@inlined
def pair_of(key: np.uint64, seeds: Seeds, workers: np.int64) -> np.uint64:
    """Both choices of a tail key in one word."""
    first, second = two_choices(key, seeds, workers)
    return np.uint64(first) | np.uint64(second) << np.uint64(32)


@inlined
def apart(pair: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The two choices."""
    return pair & np.uint64(0xFFFFFFFF), pair >> np.uint64(32)


@compiled
def find_pairs(pairs: U64, keys: U64, seeds: U64, workers: np.int64) -> None:
    """The pairs of all keys."""
    for slot in range(keys.size):
        pairs[slot] = pair_of(keys[slot], (seeds[0], seeds[1]), workers)


@compiled
def _count_others(
    seeds: Seeds,
    workers: np.int64,
    theta: float,
    summary: Any,
    pairs: U64,
    block: Any,
    keys: U64,
    weights: F64,
    start: np.uint64,
    others: np.uint64,
) -> None:
    """Count those messages of a block that are listed, one after the other.

    A function of its own, which LLVM keeps apart: the loops around it are faster without it. A key
    that has no counter is not head, whatever it counts.
    """
    counts, state, step = summary.counts, summary.ring_state, np.uint64(weights.size == keys.size)
    left, turn = state[0], state[1]
    for other in range(others):
        place, gain = np.uint64(block.others[other]), block.sums[0, other]
        key, amount = keys[start + place], weights[(start + place) * step] * gain
        found, left, turn = count_other(summary, key, amount, left, turn)
        pair = block.pairs[place] = pair_of(key, seeds, workers)
        block.heads[place] = False
        if found >= 0:
            slot, after = np.uint64(found), gain * summary.growth[0]
            pairs[slot], block.slots[place] = pair, slot
            block.heads[place] = is_head(counts[slot], block.sums[1, other], after, theta)
    state[0], state[1] = left, turn


@inlined
def count_block(
    seeds: Seeds,
    workers: np.int64,
    theta: float,
    summary: Any,
    pairs: U64,
    block: Any,
    keys: U64,
    weights: F64,
    span: Span,
) -> np.uint64:
    """Count messages of a span into a block, from its start on; how many, not always all.

    First, without a branch, those whose counter nobody may take over: whether a key has a counter
    cannot be foreseen. Their order with the others does not matter before the next rescan. Then
    the others, each of which uses up one candidate at most: the block ends with the one that may
    need a rescan. A key that has a counter is not hashed again: its choices are kept beside it.
    """
    if summary.gain[0] > GAIN_LIMIT:
        renormalise(summary)
    cells, held, counts, state = summary.cells, summary.keys, summary.counts, summary.ring_state
    total, messages, gain = summary.total[0], summary.messages[0], summary.gain[0]
    growth, safe, spare = (
        summary.growth[0],
        summary.safe,
        np.uint64(state[2] if state[2] > 0 else 0),
    )
    mask, step, one = np.uint64(cells.size - 1), np.uint64(weights.size == keys.size), np.uint64(1)
    number, others = np.uint64(0), np.uint64(0)
    while number < span[1] - span[0]:
        at = span[0] + number
        key, amount = keys[at], weights[at * step] * gain
        block.others[others], block.sums[0, others] = number, gain
        messages += gain
        gain *= growth
        total += amount
        block.sums[1, others] = total
        cell = cells[home_of(key, mask)]
        slot = np.uint64(pick(cell >= 0, cell, _ANY))
        known = (cell >= 0) & (held[slot] == key) & (safe[slot] != 0)
        level = counts[slot] + pick(known, amount, 0.0)
        counts[slot] = level
        block.slots[number], block.pairs[number] = slot, pairs[slot]
        block.heads[number] = is_head(level, total, gain, theta)
        others += np.uint64(not known)
        number += one
        if (others > spare) | (gain > GAIN_LIMIT):
            break
    summary.total[0], summary.messages[0], summary.gain[0] = total, messages, gain
    _count_others(seeds, workers, theta, summary, pairs, block, keys, weights, span[0], others)
    return number


@dataclass(frozen=True)
class HeadScheme(Scheme):
    """Base of the two; parameters as there."""

    plans_keys: ClassVar[bool] = True
    theta: float | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        if self.theta is not None and not 0 < self.theta <= 1:
            raise SkewlessError(f"{self.name}:theta is a share in (0, 1], not {self.theta}.")
        if self.half_life is not None and not self.half_life >= 1:
            raise SkewlessError(
                f"{self.name}:half_life is at least 1 message, not {self.half_life}."
            )

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> HeadPlan:
        """Seeds and thresholds; no key is known."""
        check_workers(workers)
        return HeadPlan(
            np.array([workers]),
            np.array([least_prime(workers)]),
            choice_seeds(seed),
            np.array([self.theta or 1 / (5 * workers)]),
            np.zeros(1),
            np.zeros(1, np.int64),
            np.zeros(workers),
            np.empty(0, np.uint64),
            np.empty(0),
            np.zeros(1),
        )

    def _summary(self, plan: HeadPlan) -> tuple[SpaceSaving, U64]:
        """A source's first summary, the plan's heads, and the choices of each counter's key."""
        summary = space_saving(capacity_for(float(plan.theta[0]) / 4), self.half_life)
        pairs = np.zeros(summary.keys.size, np.uint64)
        if plan.head_keys.size:
            preload(summary, plan.head_keys, plan.head_counts, float(plan.head_total[0]))
            find_pairs(pairs, summary.keys, plan.seeds, int(plan.workers[0]))
        return summary, pairs

    def report(self, plan: HeadPlan, tally: Any) -> HeadReport:
        """What came and was sent under this plan; an idle source reports nothing."""
        sent = tally.loads - plan.start
        known = summarise(tally.summary)
        # The estimates also bound prior + new from above, so without the prior they bound the new.
        faded = float(tally.summary.growth[0]) ** -float(tally.seen[0])
        counts = known.counts.copy()
        _, where, prior = np.intersect1d(known.keys, plan.head_keys, return_indices=True)
        counts[where] -= plan.head_counts[prior] * faded
        came = np.ones(counts.size, bool)
        came[where] = counts[where] > 1e-9 * plan.head_counts[prior]
        summary = known._replace(
            keys=known.keys[came],
            counts=counts[came],
            errors=np.minimum(known.errors, counts)[came],
            total=np.maximum(0.0, known.total - plan.head_total * faded),
        )
        return HeadReport(summary, sent, np.array([int(tally.seen[0] > 0)]))

    def merge(self, a: HeadReport, b: HeadReport) -> HeadReport:
        """Summaries merge within the sum of their errors; loads and sources add up."""
        return HeadReport(merge(a.summary, b.summary), a.loads + b.loads, a.sources + b.sources)

    def replan(self, plan: HeadPlan, report: HeadReport, feedback: Feedback) -> HeadPlan:
        """A plan by which fresh sources know the heads and start from what is still uneven.

        What the sources saw is added to the plan's heads, which fade with the half-life before.
        Keys above θ/2 are kept: a key that is nearly head should not start from nothing.
        """
        sources = int(report.sources[0])
        if sources == 0:
            return plan
        kept = 1.0
        if self.half_life is not None:
            kept = 0.5 ** (float(report.loads.sum()) / sources / self.half_life)
        total = plan.head_total * kept + report.summary.total / sources
        keys = np.union1d(plan.head_keys, report.summary.keys)
        counts = np.zeros(keys.size)
        counts[np.searchsorted(keys, plan.head_keys)] += plan.head_counts * kept
        counts[np.searchsorted(keys, report.summary.keys)] += report.summary.counts / sources
        likely = counts > plan.theta / 2 * total
        return shared_out(plan, report)._replace(
            head_keys=keys[likely],
            head_counts=counts[likely],
            head_total=total,
        )
