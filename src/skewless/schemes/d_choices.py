"""D-Choices: keys of the head get as many choices as the head needs, the others two.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016). How many choices d the head needs:
let p_1 ≥ p_2 ≥ … be the shares of the head's keys and p_tail the rest. A worker is missed by the d
distinct choices of one key with probability 1 − d/W, hence by those of the first h keys with
probability (1 − d/W)^h, and these reach an expected share b_h = 1 − (1 − d/W)^h of the workers,
B_h = W · b_h of them. Whatever the least loaded choice is, those workers must take in

- all messages of the first h keys: Σ_{i≤h} p_i;
- those of a later head key whose d distinct choices are all among them, of probability
  Π_{j<d} (B_h − j) / (W − j) (0 once a factor is);
- those of a tail key whose two distinct choices are, of probability b_h · (B_h − 1) / (W − 1).

No worker should have a share above 1/W + ε, so together no more than b_h · (1 + W·ε). d is the
smallest number, from max(2, ⌈p_1·W⌉) on, for which this holds for every prefix h of the head; if
none below W does, head keys choose among all workers. (The paper's own inequality is for choices
that may coincide, and asks for more of them.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import first_choice, next_choice, second_choice, stride
from skewless.schemes.api import F64, I32, I64, TRUE_LOAD, U64
from skewless.schemes.parts.head import HeadPlan, HeadScheme, is_head, less_loaded
from skewless.sketch.space_saving import SpaceSaving, add

_FIRST_REFRESH = 64


class Cursors(NamedTuple):
    """Where each head key's search for its least loaded choice goes on; one per counter."""

    keys: U64  # [capacity] whose search it is
    choices: I32  # [capacity] among how many; 0 for none
    first: I32  # [capacity] the first choice
    step: I32  # [capacity] from one choice to the next
    hand: I32  # [capacity] the choice taken last
    ahead: I32  # [capacity] choices from the hand on, with it
    floor: F64  # [capacity] no choice was below; all before the hand were above


class DChoicesTally(NamedTuple):
    """What this source saw and sent."""

    loads: F64  # [W]
    summary: SpaceSaving
    seen: I64  # [1] messages
    choices: I64  # [2] of a head key; message at which they are computed again
    cursors: Cursors


@inlined
def _sum(values: F64) -> float:
    """What NumPy's does, which takes a quarter of a second to compile."""
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def are_enough(shares: F64, tail: float, choices: int, workers: int, epsilon: float) -> bool:
    """Whether the inequality holds for every prefix of the head, given by falling shares."""
    allowed_share = 1 + workers * epsilon
    later = _sum(shares)
    first = 0.0
    missed = 1.0
    for h in range(shares.size):
        first += shares[h]
        later -= shares[h]
        missed *= 1 - choices / workers
        reached = 1 - missed
        if reached * allowed_share >= 1:
            return True  # the left side never exceeds 1, and later prefixes reach more workers
        all_inside = 1.0
        for j in range(choices):
            all_inside *= max(0.0, workers * reached - j) / (workers - j)
        both_inside = reached * max(0.0, workers * reached - 1) / (workers - 1)
        if first + all_inside * later + both_inside * tail > reached * allowed_share:
            return False
    return True


@compiled
def fewest_choices(shares: F64, tail: float, workers: int, epsilon: float) -> int:
    """The smallest d for head keys of these falling shares; W stands for all workers."""
    if shares.size == 0 or workers <= 2:
        return min(2, workers)
    choices = max(2, math.ceil(shares[0] * workers))
    while choices < workers and not are_enough(shares, tail, choices, workers, epsilon):
        choices += 1
    return min(choices, workers)


@compiled
def _sort_falling(values: F64) -> None:
    """Shell's sort: for the few hundred heads it is as fast as NumPy's, which compiles for 1 s."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value, at = values[i], i
            while at >= gap and values[at - gap] < value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


@allocating
def _refresh(
    summary: Any, choices: I64, seen: int, workers: int, theta: float, epsilon: float, refresh: int
) -> None:
    """Compute d from the summary, and say when to do so again: first often, then regularly."""
    shares = np.empty(summary.counts.size)
    heads = 0
    for slot in range(summary.used[0]):
        if is_head(summary, slot, theta):
            shares[heads] = summary.counts[slot] / summary.total[0]
            heads += 1
    falling = shares[:heads]
    _sort_falling(falling)
    choices[0] = fewest_choices(falling, max(0.0, 1 - _sum(falling)), workers, epsilon)
    choices[1] = seen + min(max(seen, _FIRST_REFRESH), refresh)


@inlined
def _least_loaded(
    cursors: Any, slot: int, loads: F64, choices: int, workers: int, prime: int
) -> np.int64:
    """The least loaded choice of a head key; of equals, the first.

    Loads only grow: the choices before the hand are still above the floor, and one that is on it
    ends the search. A hot key seldom looks at more than one or two choices, any key at d.
    """
    hand, ahead, floor = np.int64(cursors.hand[slot]), cursors.ahead[slot], cursors.floor[slot]
    first, step = np.int64(cursors.first[slot]), np.int64(cursors.step[slot])
    choice, left = hand, np.int64(ahead)
    worker, least, place = hand, loads[hand], left
    while left > 1 and least > floor:
        choice = next_choice(choice, step, workers, prime)
        left -= 1
        load = loads[choice]
        place = left if load < least else place
        worker = choice if load < least else worker
        least = min(load, least)
    if least > floor and ahead < choices:
        after, after_place = worker, place
        choice, left = first, np.int64(choices)
        worker, place, before = first, left, loads[first]
        while left > ahead + 1:
            choice = next_choice(choice, step, workers, prime)
            left -= 1
            load = loads[choice]
            place = left if load < before else place
            worker = choice if load < before else worker
            before = min(load, before)
        if least < before:
            worker, place = after, after_place
        least = min(least, before)
    cursors.hand[slot], cursors.ahead[slot], cursors.floor[slot] = worker, place, least
    return worker


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded of the key's choices; of equals, the first."""
    summary, loads, seen, choices = tally.summary, tally.loads, tally.seen, tally.choices
    workers, prime, theta, seeds = plan.workers[0], plan.prime[0], plan.theta[0], plan.seeds
    slot = add(summary, key, weight)
    seen[0] += 1
    if seen[0] >= choices[1]:
        _refresh(summary, choices, seen[0], workers, theta, plan.epsilon[0], plan.refresh[0])
    if choices[0] > 2 and is_head(summary, slot, theta):
        cursors = tally.cursors
        if cursors.keys[slot] != key or cursors.choices[slot] != choices[0]:
            first = first_choice(key, seeds, workers)
            second = second_choice(key, seeds, workers, first)
            cursors.keys[slot] = key
            cursors.choices[slot] = choices[0]
            cursors.first[slot] = first
            cursors.step[slot] = stride(first, second, prime)
            cursors.hand[slot] = first
            cursors.ahead[slot] = choices[0]
            cursors.floor[slot] = -np.inf
        worker = _least_loaded(cursors, slot, loads, choices[0], workers, prime)
        least = loads[worker]
    else:
        worker, least = less_loaded(loads, key, seeds, workers)
    loads[worker] = least + weight
    return worker


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a load becomes the true one, which may lie below the floors."""
    if kind == TRUE_LOAD:
        tally.loads[worker] = signal[0]
        tally.cursors.choices[:] = 0


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
        choices = np.array([min(2, workers), _FIRST_REFRESH])
        summary = self._summary(plan)
        capacity = summary.counts.size
        if plan.head_keys.size:
            theta = float(plan.theta[0])
            _refresh(summary, choices, 0, workers, theta, self.epsilon, self.refresh)
        return DChoicesTally(
            plan.start.copy(),
            summary,
            np.zeros(1, np.int64),
            choices,
            Cursors(
                keys=np.zeros(capacity, np.uint64),
                choices=np.zeros(capacity, np.int32),
                first=np.zeros(capacity, np.int32),
                step=np.zeros(capacity, np.int32),
                hand=np.zeros(capacity, np.int32),
                ahead=np.zeros(capacity, np.int32),
                floor=np.zeros(capacity),
            ),
        )
