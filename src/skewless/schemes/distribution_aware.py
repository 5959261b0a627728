"""Distribution-aware Key Grouping: learn the heavy hitters, pack them and the rest, deploy.

Rivetti, Querzoni, Anceaume, Busnel, Sericola: "Efficient Key Grouping for Near-Optimal Load
Balancing in Stream Processing Systems" (DEBS 2015). While learning, a message goes where its hash
sends it (key grouping), and is counted in a SpaceSaving summary and in one of W·μ buckets. The
plan built from it packs the heavy hitters (estimate ≥ Θ·m) and what is left in the buckets, the
largest first, onto the workers: each key has one worker, found in O(1).

Beyond the paper: the sources' summaries merge, so all of them learn; and with `relearn` a deployed
plan goes on learning, and each replan moves at most the share `budget` of its *items*, which are
the keys with a place of their own and the buckets. (A key that fades from the head and returns to
its bucket's worker counts as moved; so does a bucket, with all keys in it.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, scale
from skewless.schemes.api import (
    F64,
    I32,
    I64,
    U64,
    Feedback,
    RouteTable,
    Scheme,
    check_room,
    check_workers,
)
from skewless.schemes.parts.layout import Heads, Layout, Packing, first_layout, next_layout
from skewless.schemes.parts.learning import (
    LearningReport,
    buckets_of,
    learn,
    merge_reports,
    remember,
    report_of,
)
from skewless.sketch.key_table import EMPTY, KeyTable, slot_of, table_of
from skewless.sketch.space_saving import (
    SpaceSaving,
    Summary,
    capacity_for,
    heavy_hitters,
    space_saving,
    summarise,
)


class DistributionPlan(NamedTuple):
    """Where heads and buckets go, and what a re-learning plan remembers of earlier epochs."""

    workers: I64  # [1]
    seeds: U64  # [2]
    seed: I64  # [1]
    epoch: I64  # [1] 0 while learning, then one more with each replan
    learning: I64  # [1] 1 if the sources count what comes
    buckets: I32  # [W·μ] the worker of each bucket
    table: KeyTable  # head key -> row of head_workers
    head_keys: U64  # [h]
    head_workers: I32  # [h, 2] twice the same, but for the variant with-partial
    known: Summary  # of earlier epochs, as of the replan
    known_buckets: F64  # [W·μ]


class DistributionTally(NamedTuple):
    """What a source counts: all of it while learning, the loads to split heads."""

    summary: SpaceSaving
    buckets: F64  # [W·μ] in the summary's units
    loads: F64  # [W]
    seen: I64  # [1] messages while learning


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> np.int64:
    """The key's own worker (the less loaded of its two), or its bucket's."""
    bucket = scale(hash_long(key, plan.seeds[0]), np.uint64(plan.buckets.size))
    if plan.learning[0]:
        learn(tally, key, bucket, weight)
    row = plan.table.values[slot_of(plan.table.keys, plan.table.values, key)]
    worker = np.int64(plan.buckets[bucket])
    if row != EMPTY:
        worker = np.int64(plan.head_workers[row, 0])
        if tally.loads.size:
            other = np.int64(plan.head_workers[row, 1])
            worker = other if tally.loads[other] < tally.loads[worker] else worker
    if tally.loads.size:
        tally.loads[worker] += weight
    return worker


@dataclass(frozen=True)
class DistributionAware(Scheme):
    """Distribution-aware Key Grouping.

    learn: messages to learn from, over all sources; theta: share from which a key is a heavy
    hitter; epsilon: error of the summary, Θ/2 if not given; mu: buckets per worker; capacity:
    counters of the summary, as many as epsilon needs if not given. variant: `plain`; `wosim`, the
    tail goes straight by hash; `with-partial`, a heavy hitter is packed as two halves and goes to
    the less loaded of their workers; `quadratic`, an item's load is its count squared. relearn:
    messages after which a deployed plan is built again, 0 for never; budget: share of the items
    that a replan may move; half_life: messages after which old ones count half. Without it, a
    re-learned plan knows only the epoch before.
    """

    learn: int = 80_000
    theta: float = 0.1
    epsilon: float | None = None
    mu: int = 2
    capacity: int | None = None
    variant: Literal["plain", "wosim", "with-partial", "quadratic"] = "plain"
    relearn: int = 0
    budget: float = 1.0
    half_life: float | None = None

    name: ClassVar[str] = "distribution-aware"
    plans_keys: ClassVar[bool] = True
    learns: ClassVar[Any] = "prefix"
    choose: ClassVar[Any] = staticmethod(choose)

    def __post_init__(self) -> None:
        if self.learn < 1:
            raise SkewlessError(
                f"{self.name}:learn must be at least 1 message, not {self.learn}: "
                "an empty learning phase contributes no data."
            )
        if not 0 < self.theta <= 1:
            raise SkewlessError(f"{self.name}:theta is a share in (0, 1], not {self.theta}.")
        if not 0 < self.error < self.theta:
            raise SkewlessError(
                f"{self.name}:epsilon must lie between 0 and theta={self.theta}, not at "
                f"{self.error}: a larger error could not tell heavy hitters from others."
            )
        check_room(f"{self.name}:capacity", self.capacity or 0)
        if self.capacity is not None and self.capacity < capacity_for(self.error):
            raise SkewlessError(
                f"{self.name}:capacity={self.capacity} counters are too few for theta="
                f"{self.theta} with epsilon={self.error}: give at least "
                f"{capacity_for(self.error)}."
            )
        if self.mu < 1:
            raise SkewlessError(f"{self.name}:mu must be at least 1, not {self.mu}.")
        if self.variant not in ("plain", "wosim", "with-partial", "quadratic"):
            raise SkewlessError(
                f"{self.name}:variant is plain, wosim, with-partial or quadratic, "
                f"not '{self.variant}'."
            )
        if self.relearn < 0:
            raise SkewlessError(f"{self.name}:relearn must not be negative, not {self.relearn}.")
        if not 0 <= self.budget <= 1:
            raise SkewlessError(f"{self.name}:budget is a share in [0, 1], not {self.budget}.")
        if self.half_life is not None and not self.half_life >= 1:
            raise SkewlessError(
                f"{self.name}:half_life is at least 1 message, not {self.half_life}."
            )

    @property
    def error(self) -> float:
        """The summary's error as a share of the messages."""
        return self.theta / 2 if self.epsilon is None else self.epsilon

    @property
    def learning_messages(self) -> int:
        """The length of the learning phase."""
        return self.learn

    @property
    def replan_every(self) -> int:
        """Messages between two replans of a deployed plan."""
        return self.relearn

    @property
    def one_worker_per_key(self) -> bool:  # type: ignore[override]
        """Unless heavy hitters are split."""
        return self.variant != "with-partial"

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> DistributionPlan:
        """Learn: every bucket lies where key grouping would send its keys."""
        check_workers(workers)
        buckets = workers * self.mu
        return DistributionPlan(
            np.array([workers]),
            choice_seeds(seed),
            np.array([seed]),
            np.zeros(1, np.int64),
            np.ones(1, np.int64),
            (np.arange(buckets) // self.mu).astype(np.int32),
            table_of(np.empty(0, np.uint64), np.empty(0, np.int64)),
            np.empty(0, np.uint64),
            np.empty((0, 2), np.int32),
            summarise(self._empty_summary()),
            np.zeros(buckets),
        )

    def _empty_summary(self) -> SpaceSaving:
        return space_saving(self.capacity or capacity_for(self.error), self.half_life)

    def tally(self, plan: DistributionPlan, source: int) -> DistributionTally:
        """Nothing counted; loads only where heads are split."""
        split = int(plan.workers[0]) if self.variant == "with-partial" else 0
        return DistributionTally(
            self._empty_summary(),
            np.zeros(plan.buckets.size),
            np.zeros(split),
            np.zeros(1, np.int64),
        )

    def report(self, plan: DistributionPlan, tally: DistributionTally) -> LearningReport:
        """What was counted, as of now."""
        return report_of(tally)

    def merge(self, a: LearningReport, b: LearningReport) -> LearningReport:
        """Summaries merge within the sum of their errors; buckets and messages add up."""
        return merge_reports(a, b)

    def replan(
        self, plan: DistributionPlan, report: LearningReport, feedback: Feedback
    ) -> DistributionPlan:
        """Build the plan, or rebuild a deployed one within the budget; without news, keep it."""
        if not report.messages[0]:
            return plan
        plan, known, counted = remember(plan, report, self.half_life)
        old = Layout(
            plan.head_keys,
            plan.head_workers.astype(np.int64),
            plan.buckets.astype(np.int64),
        )
        heads = self._heads(plan, known)
        if plan.epoch[0]:
            new = next_layout(old, heads, counted, self._packing(plan), self.budget)
        else:
            new = first_layout(old, heads, counted, self._packing(plan))
        return plan._replace(
            epoch=plan.epoch + 1,
            learning=np.array([int(self.relearn > 0)]),
            buckets=new.buckets.astype(np.int32),
            table=table_of(new.keys, np.arange(new.keys.size)),
            head_keys=new.keys,
            head_workers=new.heads.astype(np.int32),
        )

    def _packing(self, plan: DistributionPlan) -> Packing:
        return Packing(
            workers=int(plan.workers[0]),
            halves=2 if self.variant == "with-partial" else 1,
            power=2 if self.variant == "quadratic" else 1,
            tail=self.variant != "wosim",
        )

    def _heads(self, plan: DistributionPlan, known: Summary) -> Heads:
        """Heavy hitters, and faded ones that the plan still has a place for."""
        heavy, _ = heavy_hitters(known, self.theta)
        keys = np.union1d(heavy, plan.head_keys)
        weights = np.zeros(keys.size)
        _, here, there = np.intersect1d(keys, known.keys, return_indices=True)
        weights[here] = known.counts[there]
        buckets = buckets_of(keys, plan.seeds, plan.buckets.size)
        return Heads(keys, weights, buckets, ~np.isin(keys, heavy))

    def table(self, plan: DistributionPlan) -> RouteTable | None:
        """Heads and buckets as they are; split heads need loads."""
        if not self.one_worker_per_key:
            return None
        return RouteTable(
            plan.seeds,
            int(plan.seed[0]),
            plan.buckets,
            plan.head_keys,
            np.arange(plan.head_keys.size + 1),
            plan.head_workers[:, 0],
        )

    def most_workers_per_key(self, workers: int) -> int:
        """One, or two for split heavy hitters."""
        return 1 if self.one_worker_per_key else min(2, workers)
