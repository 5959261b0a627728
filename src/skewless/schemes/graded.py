"""Graded choices: a key leaves a full worker the sooner the hotter it is.

Every key has all workers as its choices, in an order of its own. It stays where it is until that
worker is full for it. Then it goes to one of the workers it has used before, and to the next in its
order only if they are full too. A worker is full for a cold key when its load exceeds the mean by a
part of the target, for the hottest keys when it reaches the mean, and for keys between by the
logarithm of their share. So hot keys give way to cold ones and even out whatever those do; cold
keys stay where their hash puts them; no key uses more workers than it must. Where most of the
stream is hot, other keys may exceed the mean for longer: the hot ones will make up for it. A worker
that falls behind is topped up: by the hottest keys, and where there are none by keys that have it
as their first or second choice. Nothing is planned; loads and shares fade, so drift is followed.
The reasons and limits are in docs/graded.md.

What holds for every stream and source, of its faded loads: max < mean + slack + loan + 1 message,
for no worker beyond that is ever chosen, and one below the mean always exists. The loan is nothing
where less than 0.4 of the stream is hot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import (
    choice_seeds,
    hash_long,
    least_prime,
    next_choice,
    scale,
    second_choice,
    stride,
)
from skewless.schemes.api import (
    F64,
    I32,
    I64,
    TRUE_LOAD,
    U64,
    Feedback,
    Scheme,
    check_workers,
)
from skewless.sketch.recent import LONGEST, Recent, add, recent

AIM = 0.3  # of the target is what one source allows itself above the mean
EARLY = 1000.0  # messages ÷ mean on top of that: while loads are small, few messages are no harm,
EARLIEST = 10.0  # but at most so many targets, or the mean,
ENOUGH = 0.05  # where so much of the stream is ballast, which evens that out; without, AIM,
LEAST = 0.5  # and at least so much of a message, which is what rounding leaves
RIVAL = 1 / 2  # of the hottest key's share, or a worker's share if that is more: the heat of 1
COLDEST = 1 / 200  # keys of this heat or less are cold
HOT = 1 / 2  # keys of this heat or more are ballast: they go to a worker that lags
COOLING = 0.99  # of the hottest key's share is kept when a worker that lags is looked for
KEPT = 0.4  # of the stream as ballast is none to spare; what it has beyond that,
LOAN = 5.0  # times the target, others may exceed the mean by; less what a key takes of a worker,
LEAST_LOAN = 0.5  # but for every key at least this part of it
LAGS = 0.1  # of the target is how far a worker may fall behind before hot keys are sent to it,
BEHIND = 0.3  # before warm keys turn to it,
FAR_BEHIND = 0.8  # before cold ones do;
PATIENCE = 24.0  # times the ballast to spare is all this more, for that will come by itself
FADING = 12000.0  # messages per worker after which a load counts half
MOVED = 1 << 14  # places in which keys that moved are remembered
LOOKS = 32  # of a key's choices are looked at, from where it is, for one that it has used before
KNOWN = 64  # of its choices are known as used or not; beyond, all count up to the furthest
TAG, WORKER, NTH, WIDTH = range(4)  # columns of `moved`
_LARGEST_GAIN = 2.0**60


class GradedPlan(NamedTuple):
    """Seeds, the target, and what earlier batches left uneven."""

    workers: I64  # [1]
    prime: I64  # [1] least prime ≥ workers
    seeds: U64  # [2]
    target: F64  # [1]
    growth: F64  # [1] of the loads' gain, per message
    rates: F64  # [W] capacity ÷ mean capacity
    start: F64  # [W] a source's share of what earlier batches left uneven


class GradedTally(NamedTuple):
    """Faded loads per capacity, recent shares, the worker that lags, and who moved where."""

    loads: F64  # [W] load ÷ rate
    sent: F64  # [3] faded load in all, faded messages in all, faded load of hot keys
    gain: F64  # [1] of the next message in the loads
    hottest: F64  # [1] share of the hottest key of late
    laggard: I64  # [2] the worker that lags, messages until it is looked for again
    shares: Recent
    moved: I32  # [MOVED, 4] bits of a key's hash, where it is, which of its choices, of how many
    used: U64  # [MOVED] which of the first KNOWN choices the key has used, as bits


class GradedReport(NamedTuple):
    """What the sources sent, beyond the loads they started from."""

    loads: F64  # [W] per capacity
    sources: I64  # [1]


@inlined
def _grade(heat: float) -> float:
    """1 for a cold key, 0 for one of the hottest, by the logarithm between."""
    if heat <= COLDEST:
        return 1.0
    return max(0.0, math.log(heat) / math.log(COLDEST))


@inlined
def _bit(nth: np.int64) -> np.uint64:
    """The bit of a choice in `used`; none beyond those known."""
    return np.uint64(1) << np.uint64(nth - 1) if nth <= KNOWN else np.uint64(0)


@inlined
def _look_on(
    plan: Any,
    loads: F64,
    key: np.uint64,
    first: np.int64,
    place: tuple[np.int64, np.int64, np.int64, np.uint64],
    limits: tuple[float, float],
) -> tuple[np.int64, np.int64, np.int64]:
    """The next of the key's own workers below the mean, else one that is not full, else a new one.

    `place` is a worker, which of the key's choices it is, the furthest it has used, and which of
    those before; `limits` are the mean, and the load at which a worker is full.
    """
    workers, prime = plan.workers[0], plan.prime[0]
    worker, nth, width, used = place
    mean, full = limits
    step = stride(first, second_choice(key, plan.seeds, workers, first), prime)
    other, number = worker, nth
    fits = loads[worker] < full
    for _ in range(min(int(width) - 1, LOOKS)):
        if number == width:
            other, number = first, np.int64(1)
        else:
            other, number = next_choice(other, step, workers, prime), number + 1
        if number <= KNOWN and not used & _bit(number):
            continue
        if loads[other] < mean:
            return other, number, width
        if not fits and loads[other] < full:
            worker, nth, fits = other, number, True
    while loads[worker] >= full:
        worker = next_choice(worker, step, workers, prime)
        nth = nth + 1 if nth < workers else np.int64(1)
    return worker, nth, max(width, nth)


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """Where the key is, unless that worker is full for a key as hot as this or another lags."""
    loads, sent, gain, laggard = tally.loads, tally.sent, tally.gain, tally.laggard
    workers, target = plan.workers[0], plan.target[0]
    hashed = hash_long(key, plan.seeds[0])
    share = add(tally.shares, hashed, weight)
    if laggard[1] == 0:
        laggard[0] = np.argmin(loads)
        tally.hottest[0] *= COOLING
        laggard[1] = workers
    laggard[1] -= 1
    tally.hottest[0] = max(tally.hottest[0], share)
    heat = share / max(1.0 / workers, RIVAL * tally.hottest[0])
    hot = heat >= HOT
    sent[0] += gain[0] * weight
    sent[1] += gain[0]
    if hot:
        sent[2] += gain[0] * weight
    mean = sent[0] / workers
    message = gain[0] * (sent[0] / sent[1])
    ballast = sent[2] / sent[0]
    targets = AIM + (EARLIEST - AIM) * min(1.0, ballast / ENOUGH)
    early = max(message, message * message * EARLY / mean)
    grace = max(LEAST * message, min(early, min(1.0, targets * target) * mean))
    spare = max(0.0, ballast - KEPT)
    lag = target * (1.0 + PATIENCE * spare)
    first = scale(hashed, np.uint64(workers))
    worker, nth, width, used = first, np.int64(1), np.int64(1), np.uint64(1)
    tag = np.int32(hashed >> np.uint64(16))
    number = np.int64(hashed & np.uint64(MOVED - 1))
    moved = tally.moved[number]
    if moved[TAG] == tag and moved[WIDTH] > 0:
        worker, nth, width = np.int64(moved[WORKER]), np.int64(moved[NTH]), np.int64(moved[WIDTH])
        used = tally.used[number]
    lowest = loads[laggard[0]]
    if hot and lowest < mean * (1.0 - LAGS * lag) - grace:
        worker = laggard[0]
    else:
        before = worker
        behind = mean * (1.0 - (FAR_BEHIND if heat <= COLDEST else BEHIND) * lag) - grace
        if lowest < behind and workers > 1:
            second = second_choice(key, plan.seeds, workers, first)
            if loads[second] < min(behind, loads[worker]):
                worker, nth, width = second, np.int64(2), max(width, np.int64(2))
            elif loads[first] < min(behind, loads[worker]):
                worker, nth = first, np.int64(1)
        if loads[worker] >= mean:
            full = mean + _grade(heat) * (AIM * target * mean + grace)
            if not hot:
                loan = max(spare - share * workers, LEAST_LOAN * spare)
                full += LOAN * loan * target * mean
            if width > 1 or loads[worker] >= full:
                place, limits = (worker, nth, width, used), (mean, full)
                worker, nth, width = _look_on(plan, loads, key, first, place, limits)
        if worker != before:
            moved[TAG], moved[WORKER], moved[NTH], moved[WIDTH] = tag, worker, nth, width
            tally.used[number] = used | _bit(nth)
    loads[worker] += gain[0] * weight / plan.rates[worker]
    gain[0] *= plan.growth[0]
    if gain[0] > _LARGEST_GAIN:
        for each in range(workers):
            loads[each] /= gain[0]
        for part in range(sent.size):
            sent[part] /= gain[0]
        gain[0] = 1.0
    return int(worker)


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: the load of a worker becomes the true one, and the total follows."""
    if kind == TRUE_LOAD:
        load = signal[0] * tally.gain[0]
        tally.sent[0] += (load - tally.loads[worker]) * plan.rates[worker]
        tally.loads[worker] = load


@dataclass(frozen=True)
class GradedChoices(Scheme):
    """Graded choices, with skew, cost and unequal machines in one router.

    target: how far above the mean the most loaded worker may be: 0.01 is max/mean ≤ 1.01.
    half_life: messages of a source after which a message counts half in its key's share.
    """

    target: float = 0.01
    half_life: float = 200_000.0

    name: ClassVar[str] = "graded"
    knows_costs: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise SkewlessError(
                f"graded:target is how far max/mean may exceed 1, above 0 and up to 1, "
                f"not {self.target}."
            )
        if not 1 <= self.half_life <= LONGEST:
            raise SkewlessError(
                f"graded:half_life is from 1 to {LONGEST:,.0f} messages, not {self.half_life}."
            )

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> GradedPlan:
        """Seeds, and the workers' rates."""
        check_workers(workers)
        rates = np.ones(workers) if capacities is None else np.asarray(capacities, np.float64)
        return GradedPlan(
            workers=np.array([workers]),
            prime=np.array([least_prime(workers)]),
            seeds=choice_seeds(seed),
            target=np.array([self.target]),
            growth=np.array([2.0 ** (1.0 / (FADING * workers))]),
            rates=rates / rates.mean(),
            start=np.zeros(workers),
        )

    def tally(self, plan: GradedPlan, source: int) -> GradedTally:
        """Nothing seen; loads from the plan."""
        total = float((plan.start * plan.rates).sum())
        return GradedTally(
            loads=plan.start.copy(),
            sent=np.array([total, total, 0.0]),
            gain=np.ones(1),
            hottest=np.zeros(1),
            laggard=np.zeros(2, np.int64),
            shares=recent(self.half_life),
            moved=np.zeros((MOVED, 4), np.int32),
            used=np.zeros(MOVED, np.uint64),
        )

    def report(self, plan: GradedPlan, tally: GradedTally) -> GradedReport:
        """Loads as of now; a source that sent nothing does not count."""
        loads = tally.loads / tally.gain - plan.start
        return GradedReport(loads, np.array([int(loads.any())]))

    def merge(self, a: GradedReport, b: GradedReport) -> GradedReport:
        """Loads and sources add up."""
        return GradedReport(a.loads + b.loads, a.sources + b.sources)

    def replan(self, plan: GradedPlan, report: GradedReport, feedback: Feedback) -> GradedPlan:
        """Carry what is still uneven into the next batch, each source its share of it."""
        uneven = plan.start + report.loads / max(1, int(report.sources[0]))
        return plan._replace(start=uneven - uneven.min())

    def remark(self, loads: I64, sources: int) -> str | None:
        """Whether the target was missed, and what that takes."""
        uneven = float(loads.max() / loads.mean()) - 1
        if uneven <= self.target:
            return None
        each = loads.mean() / sources
        room = (1 - AIM) * self.target  # for a message, and the slack of small loads
        needed = max(2 / room, (1 + math.sqrt(1 + 4 * room * EARLY)) / (2 * room))
        if each < needed:
            why = (
                f"a source sends each worker {each:.0f} messages, and the target is sure only from "
                f"about {needed:.0f} on."
            )
        else:
            why = (
                "the last burst of a key overloaded a worker, and the stream ended before hotter "
                "keys had made up for it."
            )
        return f"max/mean is {1 + uneven:.4g}, above the target of {1 + self.target:g}: {why}"
