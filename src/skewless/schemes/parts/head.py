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

from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, least_prime, scale
from skewless.schemes.api import F64, I32, I64, U64, Feedback, Scheme, check_workers
from skewless.sketch.space_saving import (
    SpaceSaving,
    Summary,
    Sums,
    capacity_for,
    merge,
    preload,
    space_saving,
    summarise,
)

FEWEST_MESSAGES = 4.0
BLOCK = 256  # messages are hashed at a time


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


class HeadReport(NamedTuple):
    """What the sources saw and sent, beyond what they started from."""

    summary: Summary
    loads: F64  # [W]
    sources: I64  # [1]


@inlined
def is_head(count: float, sums: Sums, theta: float) -> bool:
    """Whether a key with this count is head, given the summary's sums: O(1)."""
    # An `and` would be a branch, which the processor cannot foresee.
    return (count > theta * sums[0]) & (count >= FEWEST_MESSAGES * sums[2])


@inlined
def two_choices(
    key: np.uint64, seeds: tuple[np.uint64, np.uint64], workers: np.int64
) -> tuple[np.int64, np.int64]:
    """The choices of a tail key; of one worker, it twice."""
    first = scale(hash_long(key, seeds[0]), np.uint64(workers))
    second = scale(hash_long(key, seeds[1]), np.uint64(workers - 1))
    return first, min(second + np.int64(second >= first), workers - 1)


@inlined
def hash_block(
    choices: I32, keys: U64, start: np.int64, stop: np.int64, seeds: U64, workers: np.int64
) -> None:
    """The choices of messages start … stop − 1, many at once: [2, at least so many]."""
    both = seeds[0], seeds[1]
    for number in range(stop - start):
        first, second = two_choices(keys[np.uint64(start + number)], both, workers)
        choices[0, number] = first
        choices[1, number] = second


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

    def _summary(self, plan: HeadPlan) -> SpaceSaving:
        """A source's first summary: the plan's heads."""
        summary = space_saving(capacity_for(float(plan.theta[0]) / 4), self.half_life)
        if plan.head_keys.size:
            preload(summary, plan.head_keys, plan.head_counts, float(plan.head_total[0]))
        return summary

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
        uneven = plan.start + report.loads / sources
        kept = 1.0
        if self.half_life is not None:
            kept = 0.5 ** (float(report.loads.sum()) / sources / self.half_life)
        total = plan.head_total * kept + report.summary.total / sources
        keys = np.union1d(plan.head_keys, report.summary.keys)
        counts = np.zeros(keys.size)
        counts[np.searchsorted(keys, plan.head_keys)] += plan.head_counts * kept
        counts[np.searchsorted(keys, report.summary.keys)] += report.summary.counts / sources
        likely = counts > plan.theta / 2 * total
        return plan._replace(
            start=uneven - uneven.min(),
            head_keys=keys[likely],
            head_counts=counts[likely],
            head_total=total,
        )
