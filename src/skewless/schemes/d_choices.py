"""D-Choices: keys of the head get as many choices as the head needs, the others two.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016). How many choices the head
needs is computed from its shares again and again: `parts/enough.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of, order_of, pick
from skewless.errors import SkewlessError
from skewless.hashing import next_choice, stride
from skewless.schemes.api import F64, I32, I64, TRUE_LOAD, U64
from skewless.schemes.parts.enough import fewest_choices, sort_falling, total
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

_FIRST_REFRESH = 64
_MOST = np.int64(2**63 - 1)
LANES = 4
FEW = 64  # choices are all looked at for every message; of more, as many as it takes
ROWS = 512  # for the choices of head keys, which are rarely as many
Loaded = tuple[np.uint64, np.int64]  # a worker, its load's bits
Family = tuple[np.int64, np.int64, np.int64, np.int64]  # second choice, step, workers, prime
Field = tuple[np.int64, np.int64]  # workers, prime
Message = tuple[np.uint64, np.uint64, np.uint64, bool, float]  # key, slot, pair, head, weight


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
    workers: I32  # [ROWS + 1, FEW] from the third on, those of each lane LANES apart


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
    pairs: U64  # [capacity] the first two choices of each counter's key
    block: Block


# Small helpers are handed what they need, not the plan and the tally: numba takes a tuple apart,
# array by array, for every call, and puts it together again inside, which is more code than theirs.


@compiled
def _refresh(
    plan: Any, summary: Any, shares: F64, choices: I64, on_floor: I64, seen: np.int64
) -> None:
    """Compute d from the summary, and say when to do so again: first often, then regularly."""
    whole, gain, theta = summary.total[0], summary.gain[0], plan.theta[0]
    heads = 0
    for slot in range(summary.used[0]):
        if is_head(summary.counts[slot], whole, gain, theta):
            shares[heads] = summary.counts[slot] / whole
            heads += 1
    falling = shares[:heads]
    sort_falling(falling)
    rest = 1.0 - total(falling)
    tail = rest if rest > 0.0 else 0.0
    choices[0] = fewest_choices(falling, tail, plan.workers[0], plan.epsilon[0])
    wait = seen if seen > _FIRST_REFRESH else _FIRST_REFRESH
    choices[1] = seen + (wait if wait < plan.refresh[0] else plan.refresh[0])
    on_floor[0] = 0  # it is not kept up to date while choices are few


@inlined
def _look_through(
    loads: F64, choice: np.int64, left: np.int64, last: np.int64, floor: float, family: Family
) -> tuple[np.int64, float, np.int64]:
    """The least loaded from a choice on, its load, and how many were left there.

    `left` are left, with this choice; the search ends where `last` are, or on the floor.
    """
    worker, least, place = choice, loads[np.uint64(choice)], left
    while left > last and least > floor:
        choice = next_choice(choice, family[1], family[2], family[3])
        left -= 1
        load = loads[np.uint64(choice)]
        place = left if load < least else place
        worker = choice if load < least else worker
        least = load if load < least else least
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


@inlined
def _family(pair: np.uint64, workers: np.int64, prime: np.int64) -> Family:
    """How the choices of a key go on."""
    first, second = apart(pair)
    return np.int64(second), stride(np.int64(first), np.int64(second), prime), workers, prime


@compiled
def _list_choices(
    few: Any, row: np.uint64, key: np.uint64, choices: np.int64, family: Family
) -> None:
    """Write down a key's choices from the third on, and the last until the lanes are full."""
    few.keys[row], few.choices[row] = key, choices
    length = (choices + 1) // LANES
    choice = family[0]
    for number in range(length * LANES):
        if number < choices - 2:
            choice = next_choice(choice, family[1], family[2], family[3])
        few.workers[row, number % length * LANES + number // length] = choice


@inlined
def _lesser(a: Loaded, b: Loaded) -> Loaded:
    """The less loaded of two workers; of equals, the first."""
    less = b[1] < a[1]
    return pick(less, b[0], a[0]), pick(less, b[1], a[1])


@inlined
def _loaded(loads: F64, worker: np.uint64, zero: np.uint64) -> Loaded:
    return worker, order_of(loads[worker + zero])


@inlined
def _send_by_few(
    loads: F64, few: Any, message: Message, choices: np.int64, field: Field, last: np.uint64
) -> np.uint64:
    """The least loaded of a head key's few choices, of two for another; of equals, the first.

    Whether a key is head cannot be foreseen: all choices are looked at in any case, in lanes, as
    one chain of comparisons would be as long as there are choices. Those of tail keys are of no
    interest; they share the last row, which always passes for theirs.
    """
    key, slot, pair, head, weight = message
    # Always 0, which the processor cannot know before it knows where the last message went: else
    # it guesses that loads did not change since, and starts over again whenever one did.
    zero = last >> np.uint64(40)
    few.keys[ROWS] = key
    row = pick(head, slot & np.uint64(ROWS - 1), np.uint64(ROWS))
    first, second = apart(pair)
    if few.keys[row] != key or few.choices[row] != choices:
        _list_choices(few, row, key, choices, _family(pair, field[0], field[1]))
    of_two = _lesser(_loaded(loads, first, zero), _loaded(loads, second, zero))
    none = np.uint64(0), _MOST
    a, b, c, d = of_two, none, none, none
    for place in range(np.uint64(0), np.uint64((choices + 1) & ~(LANES - 1)), np.uint64(LANES)):
        a = _lesser(a, _loaded(loads, np.uint64(few.workers[row, place]), zero))
        b = _lesser(b, _loaded(loads, np.uint64(few.workers[row, place | np.uint64(1)]), zero))
        c = _lesser(c, _loaded(loads, np.uint64(few.workers[row, place | np.uint64(2)]), zero))
        d = _lesser(d, _loaded(loads, np.uint64(few.workers[row, place | np.uint64(3)]), zero))
    of_all = _lesser(_lesser(a, b), _lesser(c, d))
    worker = pick(head, of_all[0], of_two[0])
    # The load is carried along: loading it again would chain each message to the one before.
    loads[worker] = np.int64(pick(head, of_all[1], of_two[1])).view(np.float64) + weight
    return worker


@inlined
def _send_by_many(
    loads: F64, cursors: Any, message: Message, choices: np.int64, field: Field, floor: float
) -> tuple[np.uint64, bool]:
    """The same where the choices are many, and whether the worker was on the floor."""
    key, slot, pair, head, weight = message
    first, second = apart(pair)
    worker = pick(loads[second] < loads[first], second, first)
    if head:
        start, family = np.int64(first), _family(pair, field[0], field[1])
        _start_search(cursors, slot, key, start, choices, floor)
        worker = np.uint64(_least_of_many(loads, cursors, slot, start, choices, family))
    least = loads[worker]
    loads[worker] = least + weight
    return worker, least <= floor


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded of the key's choices; of equals, the first."""
    summary, loads, on_floor = tally.summary, tally.loads, tally.on_floor
    found = count(summary, key, weight)
    known, slot = found >= 0, np.uint64(found if found >= 0 else 0)
    pair = pair_of(key, (plan.seeds[0], plan.seeds[1]), plan.workers[0])
    if known:
        tally.pairs[slot] = pair
    tally.seen[0] += 1
    seen = tally.seen[0]
    if seen >= tally.choices[1]:
        _refresh(plan, summary, tally.shares, tally.choices, on_floor, seen)
    choices, field = tally.choices[0], (plan.workers[0], plan.prime[0])
    often = summary.counts[slot] if known else 0.0
    head = is_head(often, summary.total[0], summary.gain[0], plan.theta[0])
    message = key, slot, pair, head, weight
    if choices <= FEW:
        return int(_send_by_few(loads, tally.few, message, choices, field, np.uint64(0)))
    floor = tally.floor[0]
    worker, was_low = _send_by_many(loads, tally.cursors, message, choices, field, floor)
    on_floor[0] -= np.int64(was_low)
    if on_floor[0] <= 0 and seen >= on_floor[1]:
        _find_floor(loads, tally.floor, on_floor, seen)
    return int(worker)


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is counted first, many messages at once."""
    summary, block, pairs, loads = tally.summary, tally.block, tally.pairs, tally.loads
    few, cursors, on_floor = tally.few, tally.cursors, tally.on_floor
    seeds, field = (plan.seeds[0], plan.seeds[1]), (plan.workers[0], plan.prime[0])
    theta, last = plan.theta[0], np.uint64(0)
    step, size, start = np.uint64(weights.size == keys.size), np.uint64(keys.size), np.uint64(0)
    while start < size:
        # d is computed after a message was counted and before it is sent: it is a block by itself.
        before_due = tally.choices[1] - tally.seen[0] - 1
        length = before_due if before_due > 1 else 1
        stop = start + np.uint64(length if length < BLOCK else BLOCK)
        span = start, stop if stop < size else size
        counted = count_block(seeds, field[0], theta, summary, pairs, block, keys, weights, span)
        seen = tally.seen[0]
        tally.seen[0] = seen + np.int64(counted)
        if before_due <= 0:
            _refresh(plan, summary, tally.shares, tally.choices, on_floor, tally.seen[0])
        choices = tally.choices[0]
        for number in range(counted):
            at = start + number
            slot, pair = np.uint64(block.slots[number]), block.pairs[number]
            message = keys[at], slot, pair, block.heads[number], weights[at * step]
            if choices <= FEW:
                last = _send_by_few(loads, few, message, choices, field, last)
            else:
                floor = tally.floor[0]
                last, was_low = _send_by_many(loads, cursors, message, choices, field, floor)
                on_floor[0] -= np.int64(was_low)
                now = seen + np.int64(number) + 1
                if on_floor[0] <= 0 and now >= on_floor[1]:
                    _find_floor(loads, tally.floor, on_floor, now)
            out[at] = last
        start += counted


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
        summary, pairs = self._summary(plan)
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
            pairs,
            Block.empty(),
        )
        if plan.head_keys.size:
            _refresh(plan, summary, tally.shares, tally.choices, tally.on_floor, 0)
        return tally
