"""D-Choices: keys of the head get as many choices as the head needs, the others two.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016). How many choices the head
needs is computed from its shares again and again: `parts/enough.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of, order_of
from skewless.errors import SkewlessError
from skewless.hashing import next_choice, stride
from skewless.schemes.api import F64, I32, I64, TRUE_LOAD, U64
from skewless.schemes.parts.enough import fewest_choices, sort_falling, total
from skewless.schemes.parts.head import (
    BLOCK,
    HeadPlan,
    HeadScheme,
    hash_block,
    is_head,
    two_choices,
)
from skewless.sketch.space_saving import SpaceSaving, count, keep_sums, sums_of

_FIRST_REFRESH = 64
FEW = 32  # choices are all looked at for every message; of more, as many as it takes
ROWS = 512  # for the choices of head keys, which are rarely as many
Family = tuple[np.int64, np.int64, np.int64]  # a key's step from choice to choice; workers, prime


class Cursors(NamedTuple):
    """Where each head key's search for its least loaded choice goes on; one per counter."""

    keys: U64  # [capacity] whose search it is
    choices: I32  # [capacity] among how many; 0 for none
    hand: I32  # [capacity] the choice taken last
    ahead: I32  # [capacity] choices from the hand on, with it
    floor: F64  # [capacity] no choice was below; all before the hand were above


class Few(NamedTuple):
    """The choices of head keys while these are few: then looking at all needs no branch."""

    keys: U64  # [ROWS + 1] whose they are
    choices: I32  # [ROWS + 1] how many; 0 for none
    workers: I32  # [ROWS + 1, FEW] the choices in order


class DChoicesTally(NamedTuple):
    """What this source saw and sent."""

    loads: F64  # [W]
    summary: SpaceSaving
    seen: I64  # [1] messages
    choices: I64  # [2] of a head key; message at which they are computed again
    few: Few
    cursors: Cursors
    floor: F64  # [1] no worker is below
    on_floor: I64  # [2] how many workers are on it; message from which it may be looked for again
    shares: F64  # [capacity] room for those of the head
    two: I32  # [2, BLOCK] room for `route`


# Small helpers are handed what they need, not the plan and the tally: numba takes a tuple apart,
# array by array, for every call, and puts it together again inside, which is more code than theirs.


@inlined
def _refresh(plan: Any, tally: Any) -> None:
    """Compute d from the summary, and say when to do so again: first often, then regularly."""
    summary, shares, seen, choices = tally.summary, tally.shares, tally.seen[0], tally.choices
    sums, theta = sums_of(summary), plan.theta[0]
    heads = 0
    for slot in range(summary.used[0]):
        if is_head(summary.counts[slot], sums, theta):
            shares[heads] = summary.counts[slot] / sums[0]
            heads += 1
    falling = shares[:heads]
    sort_falling(falling)
    tail = max(0.0, 1.0 - total(falling))
    choices[0] = fewest_choices(falling, tail, plan.workers[0], plan.epsilon[0])
    choices[1] = seen + min(max(seen, _FIRST_REFRESH), plan.refresh[0])
    tally.on_floor[0] = 0  # it is not kept up to date while choices are few


@inlined
def _look_through(
    loads: F64, choice: np.int64, left: np.int64, last: np.int64, floor: float, family: Family
) -> tuple[np.int64, float, np.int64]:
    """The least loaded from a choice on, its load, and how many were left there.

    `left` are left, with this choice; the search ends where `last` are, or on the floor.
    """
    worker, least, place = choice, loads[np.uint64(choice)], left
    while left > last and least > floor:
        choice = next_choice(choice, family[0], family[1], family[2])
        left -= 1
        load = loads[np.uint64(choice)]
        place = left if load < least else place
        worker = choice if load < least else worker
        least = min(load, least)
    return worker, least, place


@inlined
def _least_of_many(
    loads: F64, cursors: Any, slot: np.uint64, first: np.int64, choices: np.int64, family: Family
) -> np.int64:
    """The least loaded choice of a head key; of equals, the first.

    Loads only grow: the choices before the hand are still above the floor, and one that is on it
    ends the search. A hot key seldom looks at more than one or two choices, any key at d. Once
    the floor of all workers is above the key's, the search starts again from the first choice, and
    that floor ends it: else a key with less than a message in W would look at all d every time.
    """
    floor = cursors.floor[slot]
    hand, ahead = np.int64(cursors.hand[slot]), np.int64(cursors.ahead[slot])
    worker, least, place = _look_through(loads, hand, ahead, np.int64(1), floor, family)
    if least > floor and ahead < choices:
        other, before, there = _look_through(loads, first, choices, ahead + 1, floor, family)
        if before <= least:
            worker, least, place = other, before, there
    cursors.hand[slot], cursors.ahead[slot], cursors.floor[slot] = worker, place, least
    return worker


@inlined
def _start_search(
    cursors: Any, slot: np.uint64, key: np.uint64, first: np.int64, choices: np.int64, floor: float
) -> None:
    """Start from the first choice, unless the search is this key's and may go on."""
    ours = cursors.keys[slot] == key and cursors.choices[slot] == choices
    if not ours or cursors.floor[slot] < floor:
        cursors.keys[slot], cursors.choices[slot] = key, choices
        cursors.hand[slot], cursors.ahead[slot] = first, choices
        cursors.floor[slot] = floor


@compiled
def _find_floor(loads: F64, floor: F64, on_floor: I64, seen: np.int64) -> None:
    """Find the least load and how many workers have it; again after W messages at the soonest."""
    least = least_of(loads)
    lowest = np.int64(0)
    for worker in range(loads.size):
        lowest += np.int64(loads[worker] == least)
    floor[0] = least
    on_floor[0] = lowest
    on_floor[1] = seen + loads.size


@compiled
def _list_choices(
    few: Any, row: np.uint64, key: np.uint64, first: np.int64, choices: np.int64, family: Family
) -> None:
    """Write down a key's choices."""
    few.keys[row], few.choices[row] = key, choices
    choice = first
    for number in range(choices):
        few.workers[row, number] = choice
        choice = next_choice(choice, family[0], family[1], family[2])


@inlined
def _send(
    plan: Any,
    tally: Any,
    key: np.uint64,
    slot: np.uint64,
    head: bool,
    two: tuple[np.int64, np.int64],
    seen: np.int64,
    weight: float,
) -> np.int64:
    """The least loaded of a head key's choices, of two for another; of equals, the first."""
    loads, choices, few, on_floor = tally.loads, tally.choices[0], tally.few, tally.on_floor
    first, second = two
    load, other = order_of(loads[np.uint64(first)]), order_of(loads[np.uint64(second)])
    worker = second if other < load else first
    least = min(other, load)
    if choices > FEW:
        if head:
            _start_search(tally.cursors, slot, key, first, choices, tally.floor[0])
            family = stride(first, second, plan.prime[0]), plan.workers[0], plan.prime[0]
            worker = _least_of_many(loads, tally.cursors, slot, first, choices, family)
            least = order_of(loads[np.uint64(worker)])
    elif choices > 2:
        # Whether a key is head cannot be foreseen: all choices are looked at in any case. Those of
        # tail keys are of no interest; they share the last row, which always passes for theirs.
        few.keys[ROWS] = key
        row = slot & np.uint64(ROWS - 1)
        row = row if head else np.uint64(ROWS)
        if few.keys[row] != key or few.choices[row] != choices:
            family = stride(first, second, plan.prime[0]), plan.workers[0], plan.prime[0]
            _list_choices(few, row, key, first, choices, family)
        of_all, least_of_all = worker, least
        for number in range(np.uint64(2), np.uint64(choices)):
            choice = np.int64(few.workers[row, number])
            load = order_of(loads[np.uint64(choice)])
            of_all = choice if load < least_of_all else of_all
            least_of_all = min(load, least_of_all)
        worker = of_all if head else worker
        least = least_of_all if head else least
    loads[np.uint64(worker)] = np.int64(least).view(np.float64) + weight
    if choices > FEW:
        on_floor[0] -= np.int64(least <= order_of(tally.floor[0]))
        if on_floor[0] <= 0 and seen >= on_floor[1]:
            _find_floor(loads, tally.floor, on_floor, seen)
    return worker


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded of the key's choices; of equals, the first."""
    summary = tally.summary
    slot, sums = count(summary, key, weight, sums_of(summary))
    keep_sums(summary, sums)
    tally.seen[0] += 1
    if tally.seen[0] >= tally.choices[1]:
        _refresh(plan, tally)
    head = is_head(summary.counts[slot], sums, plan.theta[0])
    two = two_choices(key, (plan.seeds[0], plan.seeds[1]), plan.workers[0])
    return int(_send(plan, tally, key, slot, head, two, tally.seen[0], weight))


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is hashed first, many keys at once."""
    summary, choices, theta = tally.summary, tally.two, plan.theta[0]
    step = np.uint64(weights.size == keys.size)
    for start in range(0, keys.size, BLOCK):
        stop = min(start + BLOCK, keys.size)
        hash_block(choices, keys, start, stop, plan.seeds, plan.workers[0])
        sums = sums_of(summary)
        seen, due = tally.seen[0], tally.choices[1]
        for number in range(stop - start):
            at = np.uint64(start + number)
            key, weight = keys[at], weights[at * step]
            slot, sums = count(summary, key, weight, sums)
            seen += 1
            if seen >= due:
                keep_sums(summary, sums)
                tally.seen[0] = seen
                _refresh(plan, tally)
                due = tally.choices[1]
            head = is_head(summary.counts[slot], sums, theta)
            two = np.int64(choices[0, number]), np.int64(choices[1, number])
            out[at] = _send(plan, tally, key, slot, head, two, seen, weight)
        keep_sums(summary, sums)
        tally.seen[0] = seen


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a load becomes the true one, which may lie below the floors."""
    if kind == TRUE_LOAD:
        tally.loads[worker] = signal[0]
        tally.cursors.choices[:] = 0
        tally.floor[0] = -np.inf
        tally.on_floor[0] = 0


@dataclass(frozen=True)
class DChoices(HeadScheme):
    """D-Choices.

    theta: share above which a key is head, 1/(5W) if not given; half_life: messages of a source
    after which old ones count half, never if not given; epsilon: the imbalance aimed at;
    refresh: messages of a source between two computations of d.
    """

    epsilon: float = 1e-4
    refresh: int = 10_000

    name: ClassVar[str] = "d-choices"
    choose: ClassVar[Any] = staticmethod(choose)
    route: ClassVar[Any] = staticmethod(route)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.epsilon > 0:
            raise SkewlessError(f"d-choices:epsilon must be positive, not {self.epsilon}.")
        if self.refresh < 1:
            raise SkewlessError(f"d-choices:refresh must be at least 1, not {self.refresh}.")

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> HeadPlan:
        """Seeds, thresholds and the schedule."""
        plan = super().plan(workers, seed, capacities)
        return plan._replace(epsilon=np.array([self.epsilon]), refresh=np.array([self.refresh]))

    def tally(self, plan: HeadPlan, source: int) -> DChoicesTally:
        """The plan's heads and loads; two choices until something is known."""
        workers = int(plan.workers[0])
        summary = self._summary(plan)
        capacity = summary.counts.size
        tally = DChoicesTally(
            plan.start.copy(),
            summary,
            np.zeros(1, np.int64),
            np.array([min(2, workers), _FIRST_REFRESH]),
            Few(
                keys=np.zeros(ROWS + 1, np.uint64),
                choices=np.zeros(ROWS + 1, np.int32),
                workers=np.zeros((ROWS + 1, FEW), np.int32),
            ),
            Cursors(
                keys=np.zeros(capacity, np.uint64),
                choices=np.zeros(capacity, np.int32),
                hand=np.zeros(capacity, np.int32),
                ahead=np.zeros(capacity, np.int32),
                floor=np.zeros(capacity),
            ),
            np.zeros(1),
            np.zeros(2, np.int64),
            np.zeros(capacity),
            np.zeros((2, BLOCK), np.int32),
        )
        if plan.head_keys.size:
            _refresh(plan, tally)
        return tally
