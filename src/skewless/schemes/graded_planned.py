"""Graded choices, planned: hot keys split by weights that were learned, without a tally.

The driver's form of graded choices, for engines that can only evaluate an expression per row. While
learning, a message goes by its hash, and is counted as in distribution-aware grouping. The plan
then leaves every cold key with the worker of its hash bucket, and pours the warm keys into what
the buckets leave below (1 + target) · mean (`pouring`): nearly all stay where they were, and the
hottest are split over workers with fixed weights. Which of its slots a message of a split key
takes, the hash of a *salt* says: anything that tells rows of one key apart. A source has no rows,
so there the salt is its own number and the time of the message, as if these were two columns.

What a plan promises, it promises of the counts it was made from. Sampling adds to it, and drift
more (docs/graded.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import allocating, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, salt_seed, scale
from skewless.schemes.api import F64, I32, I64, U64, Feedback, RouteTable, Scheme, check_workers
from skewless.schemes.parts.learning import (
    LearningReport,
    buckets_of,
    faded_messages,
    learn,
    merge_reports,
    remember,
    report_of,
)
from skewless.schemes.parts.packing import repair
from skewless.schemes.parts.pouring import pour
from skewless.sketch.key_table import EMPTY, KeyTable, slot_of, table_of
from skewless.sketch.space_saving import (
    SpaceSaving,
    Summary,
    capacity_for,
    space_saving,
    summarise,
)

WARM = 1 / 200  # of a worker's mean load: the least of a warm key, the most of a slot
LEAST_MESSAGES = 10  # a key that was seen less often is cold: its share is not known well enough
BUCKETS_PER_WORKER = 10


class PlannedPlan(NamedTuple):
    """Where buckets and heads go, and what a re-learning plan remembers of earlier epochs."""

    workers: I64  # [1]
    seeds: U64  # [2]
    seed: I64  # [1]
    rates: F64  # [W] capacities, their mean 1
    learning: I64  # [1] 1 if the sources count what comes
    buckets: I32  # [10·W] the worker of each bucket
    table: KeyTable  # head key -> its row
    head_keys: U64  # [h] keys that are split, or elsewhere than their bucket
    head_starts: I64  # [h + 1] where the slots of each begin
    head_workers: I32  # [slots]
    known: Summary  # of earlier epochs, as of the replan
    known_buckets: F64  # [10·W]


class PlannedTally(NamedTuple):
    """What a source counts while it learns, and what it hashes salts with."""

    summary: SpaceSaving
    buckets: F64  # [10·W] in the summary's units
    seen: I64  # [1] messages while learning
    salt_seed: U64  # [1]


class Warm(NamedTuple):
    """The keys that can move, and the load that cannot."""

    keys: U64  # [h] ascending
    weights: F64  # [h]
    rest: F64  # [10·W] what is left in each bucket


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> np.int64:
    """The worker of the key's bucket, or of one of its own slots."""
    bucket = scale(hash_long(key, plan.seeds[0]), np.uint64(plan.buckets.size))
    if plan.learning[0]:
        learn(tally, key, bucket, weight)
    row = plan.table.values[slot_of(plan.table.keys, plan.table.values, key)]
    worker = np.int64(plan.buckets[bucket])
    if row != EMPTY:
        at = plan.head_starts[row]
        count = plan.head_starts[row + 1] - at
        if count > 1:
            salt = hash_long(np.float64(now).view(np.uint64), tally.salt_seed[0])
            at += scale(salt, np.uint64(count))
        worker = np.int64(plan.head_workers[at])
    return worker


@allocating
def _seed_of_source(source: int, seeds: U64) -> U64:
    return np.array([hash_long(np.uint64(source), seeds[0])], np.uint64)


@dataclass(frozen=True)
class PlannedGradedChoices(Scheme):
    """Graded choices as a plan.

    target: how far max/mean of the planned loads may exceed 1; learn: messages to learn from, over
    all sources; relearn: messages after which a deployed plan is made again, 0 for never;
    half_life: messages of a source after which old ones count half. Without it, a re-learned plan
    knows only the epoch before.
    """

    target: float = 0.01
    learn: int = 100_000
    relearn: int = 0
    half_life: float | None = None

    name: ClassVar[str] = "graded-planned"
    plans_keys: ClassVar[bool] = True
    learns: ClassVar[Any] = "prefix"
    knows_costs: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise SkewlessError(f"{self.name}:target is a share in (0, 1], not {self.target}.")
        if self.learn < 1:
            raise SkewlessError(
                f"{self.name}:learn must be at least 1 message, not {self.learn}: "
                "an empty learning phase contributes no data."
            )
        if self.relearn < 0:
            raise SkewlessError(f"{self.name}:relearn must not be negative, not {self.relearn}.")
        if self.half_life is not None and not self.half_life >= 1:
            raise SkewlessError(
                f"{self.name}:half_life is at least 1 message, not {self.half_life}."
            )

    @property
    def learning_messages(self) -> int:
        """The length of the learning phase."""
        return self.learn

    @property
    def replan_every(self) -> int:
        """Messages between two replans of a deployed plan."""
        return self.relearn

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PlannedPlan:
        """Learn: every bucket lies where key grouping would send its keys."""
        check_workers(workers)
        buckets = workers * BUCKETS_PER_WORKER
        rates = np.ones(workers) if capacities is None else np.asarray(capacities, np.float64)
        return PlannedPlan(
            np.array([workers]),
            choice_seeds(seed),
            np.array([seed]),
            rates / rates.mean(),
            np.ones(1, np.int64),
            (np.arange(buckets) // BUCKETS_PER_WORKER).astype(np.int32),
            table_of(np.empty(0, np.uint64), np.empty(0, np.int64)),
            np.empty(0, np.uint64),
            np.zeros(1, np.int64),
            np.empty(0, np.int32),
            summarise(self._empty_summary(workers)),
            np.zeros(buckets),
        )

    def _empty_summary(self, workers: int) -> SpaceSaving:
        return space_saving(capacity_for(WARM / workers / 2), self.half_life)

    def tally(self, plan: PlannedPlan, source: int) -> PlannedTally:
        """Nothing counted."""
        return PlannedTally(
            self._empty_summary(int(plan.workers[0])),
            np.zeros(plan.buckets.size),
            np.zeros(1, np.int64),
            _seed_of_source(source, salt_seed()),
        )

    def report(self, plan: PlannedPlan, tally: PlannedTally) -> LearningReport:
        """What was counted, as of now."""
        return report_of(tally)

    def merge(self, a: LearningReport, b: LearningReport) -> LearningReport:
        """Summaries merge within the sum of their errors; buckets and messages add up."""
        return merge_reports(a, b)

    def replan(self, plan: PlannedPlan, report: LearningReport, feedback: Feedback) -> PlannedPlan:
        """Leave the cold keys in their buckets and pour the warm ones; without news, keep it."""
        if not report.messages[0]:
            return plan
        plan, known, counted = remember(plan, report, self.half_life)
        message = float(report.summary.total[0]) / faded_messages(report, self.half_life)
        warm = _warm(plan, known, counted, LEAST_MESSAGES * message)
        workers = int(plan.workers[0])
        mean = float(warm.rest.sum() + warm.weights.sum()) / workers
        limits = (1 + self.target) * mean * plan.rates
        buckets = repair(warm.rest, plan.buckets.astype(np.int64), workers, warm.rest.size, limits)
        rooms = np.maximum(limits - np.bincount(buckets, warm.rest, workers), 0.0)
        homes = buckets[buckets_of(warm.keys, plan.seeds, buckets.size)].astype(np.int32)
        slot = min(WARM, self.target / 2) * mean
        slots = pour(warm.weights, _places(plan, warm.keys, homes), rooms, slot)
        return _with_heads(
            plan._replace(
                buckets=buckets.astype(np.int32), learning=np.array([int(self.relearn > 0)])
            ),
            warm.keys,
            homes,
            slots,
        )

    def table(self, plan: PlannedPlan) -> RouteTable:
        """Buckets and slots as they are."""
        return RouteTable(
            plan.seeds,
            int(plan.seed[0]),
            plan.buckets,
            plan.head_keys,
            plan.head_starts,
            plan.head_workers,
        )


def _warm(plan: PlannedPlan, known: Summary, counted: F64, least: float) -> Warm:
    """Keys with the load of a slot or more, and at least the least; and the rest."""
    frequent = known.counts >= max(WARM * float(known.total[0] / plan.workers[0]), least)
    keys, weights = known.keys[frequent], known.counts[frequent]
    rest = counted.copy()
    np.subtract.at(rest, buckets_of(keys, plan.seeds, rest.size), weights)
    return Warm(keys, weights, np.maximum(rest, 0.0))  # estimates of keys may exceed what came


def _places(plan: PlannedPlan, keys: U64, homes: I32) -> list[I32]:
    """The workers that each key has under this plan; its bucket's if it is no head."""
    rows = {key: row for row, key in enumerate(plan.head_keys.tolist())}
    places = []
    for number, key in enumerate(keys.tolist()):
        row = rows.get(key)
        if row is None:
            places.append(homes[number : number + 1])
        else:
            own = plan.head_workers[plan.head_starts[row] : plan.head_starts[row + 1]]
            places.append(np.unique(own))
    return places


def _with_heads(plan: PlannedPlan, keys: U64, homes: I32, slots: list[I32]) -> PlannedPlan:
    """The plan with these heads; a key that is where its bucket is needs no entry."""
    apart = [i for i, own in enumerate(slots) if own.size > 1 or own[0] != homes[i]]
    parts = [slots[i] for i in apart]
    return plan._replace(
        table=table_of(keys[apart], np.arange(len(apart))),
        head_keys=keys[apart],
        head_starts=np.cumsum([0, *(part.size for part in parts)]),
        head_workers=np.concatenate([np.empty(0, np.int32), *parts]),
    )
