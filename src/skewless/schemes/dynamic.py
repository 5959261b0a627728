"""Dynamic Key Grouping: a hot key widens to more workers by itself, and narrows again.

Dalabasmaz and Can. A key's workers are consecutive: h(k), h(k) + 1, … modulo W, two at first. A key
that has grown old (see `key_space`) widens by one when the least loaded of its workers has reached
the threshold and the next worker has less; any key narrows by one while two of its workers are
below it (algorithms 4–6). Loads are shares of what this source sent. The paper states the most
workers a key may have (table 1) but never enforces it: here it holds. As long as loads are what
this source sent, it follows from the threshold, which not all of so many workers can have reached;
a source that hears true loads needs the limit itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, first_choice
from skewless.schemes.api import F64, I64, U64, Feedback, Scheme, check_workers, hear_true_load
from skewless.schemes.parts.key_space import (
    OLD,
    KeySpace,
    item_of,
    key_space,
    promote_to_old,
    promote_to_teenage,
    reserve,
)
from skewless.sketch.key_table import EMPTY

NARROWEST = 2


class Thresholds(NamedTuple):
    """Table 1 of the paper, in per cent."""

    ideal: float
    threshold: float
    most_workers: int


def thresholds(workers: int) -> Thresholds:
    """L_i = 100/W, L_s = L_i + √L_i, and the number of workers that carry 100 % at L_s."""
    ideal = 100 / workers
    threshold = ideal + math.sqrt(ideal)
    return Thresholds(ideal, threshold, min(workers, int(100 / threshold) + 1))


class DynamicPlan(NamedTuple):
    """Limits, cycles in seconds, and the keys that earlier batches found hot."""

    workers: I64  # [1]
    seeds: U64  # [2]
    limits: F64  # [2] shares at which a key widens, and below which it narrows
    most_workers: I64  # [1]
    per_message_s: F64  # [1] seconds that pass with each message, 0 = event time
    cycles_s: F64  # [3] baby to teenage, teenage to old, warm-up
    places: I64  # [3] baby kept at a cycle, teenage, old
    keeps: F64  # [1] share of counts and loads that survives a cycle
    warm: I64  # [1] 1 = earlier batches have warmed up
    start: F64  # [W] a source's part of what earlier batches sent
    keys: U64  # [h] learned, hottest first
    counts: F64  # [h] per source
    widths: I64  # [h]


class DynamicTally(NamedTuple):
    """Loads, the key space, and when the next cycles are due."""

    loads: F64  # [W]
    sent: F64  # [2] total load; messages
    origin_s: F64  # [1] time of the first message
    due_s: F64  # [2] next promotion to teenage, to old
    moves: I64  # [2] scale-outs, scale-downs
    space: KeySpace


class DynamicReport(NamedTuple):
    """What sources sent, and their teenage and old keys ordered by key."""

    loads: F64  # [W]
    sources: I64  # [1]
    moves: I64  # [2]
    keys: U64  # [n]
    counts: F64  # [n]
    widths: I64  # [n]


@compiled
def _run_cycles(plan: Any, tally: Any, elapsed_s: float) -> None:
    space, due_s = tally.space, tally.due_s
    if elapsed_s >= due_s[0]:
        promote_to_teenage(space, plan.places[0])
        # A long silence is one cycle, not many: nothing was counted meanwhile.
        due_s[0] = (math.floor(elapsed_s / plan.cycles_s[0]) + 1) * plan.cycles_s[0]
        if plan.keeps[0] < 1:
            for item in range(space.table.used[0]):
                space.counts[item] *= plan.keeps[0]
            for worker in range(tally.loads.size):
                tally.loads[worker] *= plan.keeps[0]
            tally.sent[0] *= plan.keeps[0]
    if elapsed_s >= due_s[1]:
        promote_to_old(space)
        due_s[1] = (math.floor(elapsed_s / plan.cycles_s[1]) + 1) * plan.cycles_s[1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """Algorithm 4: the least loaded of the key's workers, of equals the first; then its width."""
    loads, sent, space = tally.loads, tally.sent, tally.space
    workers = plan.workers[0]
    if plan.per_message_s[0] > 0:
        elapsed_s = sent[1] * plan.per_message_s[0]
    else:
        if sent[1] == 0:
            tally.origin_s[0] = now
        elapsed_s = now - tally.origin_s[0]
    if elapsed_s >= min(tally.due_s[0], tally.due_s[1]):
        _run_cycles(plan, tally, elapsed_s)
    item = item_of(space, key, NARROWEST)
    space.counts[item] += weight
    width = space.widths[item]
    widen_at = plan.limits[0] * sent[0]
    narrow_below = plan.limits[1] * sent[0]
    home = first_choice(key, plan.seeds, workers)
    worker, least, roomy = _least_loaded(loads, home, width, workers, narrow_below)
    if (
        least >= widen_at
        and space.spaces[item] == OLD
        and (plan.warm[0] or elapsed_s > plan.cycles_s[2])
    ):
        following = (home + width) % workers
        if width < plan.most_workers[0] and loads[following] < least:
            worker, least = following, loads[following]
            space.widths[item] = width + 1
            tally.moves[0] += 1
    else:
        while width > NARROWEST and roomy >= 2:
            width -= 1
            space.widths[item] = width
            tally.moves[1] += 1
            worker, least, roomy = _least_loaded(loads, home, width, workers, narrow_below)
    loads[worker] = least + weight
    sent[0] += weight
    sent[1] += 1
    return worker


@inlined
def _least_loaded(
    loads: F64, home: int, width: int, workers: int, limit: float
) -> tuple[int, float, np.int64]:
    """The least loaded of the key's workers, its load, and how many are below the limit."""
    worker, candidate = home, home
    least = loads[home]
    roomy = np.int64(least < limit)
    for _ in range(1, width):
        candidate += 1
        if candidate == workers:
            candidate = 0
        load = loads[candidate]
        roomy += np.int64(load < limit)
        worker = candidate if load < least else worker
        least = min(load, least)
    return worker, least, roomy


@dataclass(frozen=True)
class DynamicKeyGrouping(Scheme):
    """Dynamic Key Grouping.

    rate: messages per second and source; turns the paper's seconds into messages.
    keys: expected number of keys; baby, teenage and old share it.
    cycle_s, old_cycle_s, warm_up_s: promotion to teenage, to old, and time before any widening.
    hysteresis: 0 narrows at the threshold where it widens, as in the paper, and flaps; 1 narrows
        only below the ideal load; in between in proportion.
    keeps: share of counts and loads that survives each cycle; 1 never forgets, as in the paper.
    clock: `messages` counts seconds by the rate, `event` takes the time handed to the router.
    """

    rate: float = 1000.0
    keys: int = 100
    baby: float = 0.5
    teenage: float = 0.4
    old: float = 0.1
    cycle_s: float = 15.0
    old_cycle_s: float = 60.0
    warm_up_s: float = 15.0
    hysteresis: float = 0.0
    keeps: float = 1.0
    clock: Literal["messages", "event"] = "messages"

    name: ClassVar[str] = "dynamic"
    plans_keys: ClassVar[bool] = True
    least_workers: ClassVar[int] = NARROWEST
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def __post_init__(self) -> None:
        if self.keys < 10:
            raise SkewlessError(f"dynamic:keys must be at least 10 (one old key), not {self.keys}.")
        if min(self.baby, self.teenage, self.old) <= 0 or not math.isclose(
            self.baby + self.teenage + self.old, 1
        ):
            raise SkewlessError(
                "dynamic's baby, teenage and old are shares of the expected keys: give three "
                f"positive shares that sum to 1, not {self.baby} + {self.teenage} + {self.old}."
            )
        if min(self._places()) < 1:
            raise SkewlessError(
                f"dynamic's baby, teenage and old leave {self._places()} places of {self.keys} "
                "keys: give each at least one."
            )
        for name in ("rate", "cycle_s", "old_cycle_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise SkewlessError(
                    f"dynamic:{name} must be above 0 and finite, not {getattr(self, name)}."
                )
        if not (0 <= self.hysteresis <= 1 and 0 < self.keeps <= 1 and self.warm_up_s >= 0):
            raise SkewlessError(
                "dynamic takes hysteresis from 0 to 1, keeps above 0 and up to 1, "
                "and warm_up_s of at least 0."
            )

    def _places(self) -> tuple[int, int, int]:
        """Of baby, teenage and old keys."""
        teenage, old = round(self.keys * self.teenage), round(self.keys * self.old)
        return self.keys - teenage - old, teenage, old

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> DynamicPlan:
        """The thresholds of table 1, nothing learned."""
        check_workers(workers, self.least_workers)
        limit = thresholds(workers)
        band = limit.threshold - limit.ideal
        return DynamicPlan(
            workers=np.array([workers]),
            seeds=choice_seeds(seed),
            limits=np.array([limit.threshold, limit.threshold - self.hysteresis * band]) / 100,
            most_workers=np.array([limit.most_workers]),
            per_message_s=np.array([1 / self.rate if self.clock == "messages" else 0.0]),
            cycles_s=np.array([self.cycle_s, self.old_cycle_s, self.warm_up_s]),
            places=np.array(self._places()),
            keeps=np.array([self.keeps]),
            warm=np.zeros(1, np.int64),
            start=np.zeros(workers),
            keys=np.empty(0, np.uint64),
            counts=np.empty(0),
            widths=np.empty(0, np.int64),
        )

    def tally(self, plan: DynamicPlan, source: int) -> DynamicTally:
        """The learned keys in their spaces, hottest in old."""
        space = key_space(int(plan.places[1]), int(plan.places[2]), 2 * self.keys)
        for key, count, width in zip(plan.keys, plan.counts, plan.widths, strict=True):
            item = item_of(space, key, width)
            space.counts[item] = count
        if plan.keys.size:
            promote_to_teenage(space, plan.places[0])
            promote_to_old(space)
        return DynamicTally(
            plan.start.copy(),
            np.array([plan.start.sum(), 0.0]),
            np.zeros(1),
            plan.cycles_s[:2].copy(),
            np.zeros(2, np.int64),
            space,
        )

    def reserve(self, tally: DynamicTally, messages: int) -> DynamicTally:
        """Every message may bring a new key, but a cycle cuts them down again."""
        if self.clock == "messages":
            messages = min(messages, math.ceil(self.cycle_s * self.rate) + self.keys)
        room = int(tally.space.table.used[0]) + messages + 1
        return tally._replace(space=reserve(tally.space, room))

    def report(self, plan: DynamicPlan, tally: DynamicTally) -> DynamicReport:
        """Loads and grown-up keys; a source that sent nothing reports nothing."""
        space, sent = tally.space, tally.sent[1] > 0
        held = np.flatnonzero(space.table.values != EMPTY)
        items = space.table.values[held]
        grown = (space.spaces[items] > 0) & sent
        keys, items = space.table.keys[held][grown], items[grown]
        order = np.argsort(keys)
        return DynamicReport(
            tally.loads - plan.start if sent else np.zeros(plan.start.size),
            np.array([int(sent)]),
            tally.moves.copy(),
            keys[order],
            space.counts[items][order],
            space.widths[items][order],
        )

    def merge(self, a: DynamicReport, b: DynamicReport) -> DynamicReport:
        """Counts add up; a key is as wide as its widest source made it."""
        keys, where = np.unique(np.concatenate([a.keys, b.keys]), return_inverse=True)
        counts, widths = np.zeros(keys.size), np.zeros(keys.size, np.int64)
        np.add.at(counts, where, np.concatenate([a.counts, b.counts]))
        np.maximum.at(widths, where, np.concatenate([a.widths, b.widths]))
        return DynamicReport(
            a.loads + b.loads, a.sources + b.sources, a.moves + b.moves, keys, counts, widths
        )

    def replan(self, plan: DynamicPlan, report: DynamicReport, feedback: Feedback) -> DynamicPlan:
        """Start the next batch warm, with the grown-up keys as wide as they were.

        Loads are shares of all that was sent, so they are carried on whole, a source its part.
        """
        sources = max(1, int(report.sources[0]))
        hottest = np.argsort(-report.counts, kind="stable")[: self.keys]
        return plan._replace(
            warm=np.ones(1, np.int64),
            start=plan.start + report.loads / sources,
            keys=report.keys[hottest],
            counts=report.counts[hottest] / sources,
            widths=report.widths[hottest],
        )

    def most_workers_per_key(self, workers: int) -> int:
        """Table 1's maximum, and never fewer than two."""
        return max(NARROWEST, thresholds(workers).most_workers)
