"""Graded choices: a key leaves a full worker the sooner the hotter it is.

Every key has all workers as its choices, in an order of its own. It stays where it is until that
worker is full for it. Then it goes to one of the workers it has used before, and to the next in its
order only if they are full too. Around the mean load is a band of a few messages and a part of
the target. For a cold key a worker is full at the band's upper edge, for a hot key at the mean, and
for keys between by the logarithm of their own load. So hot keys give way to cold ones and even
out whatever those do; cold keys stay where their hash puts them; no key uses more workers than it
must. A worker below the band is topped up: by hot keys, and further below also by keys that have
it as their first or second choice. Nothing is planned; everything fades, so drift is followed.

What holds for every stream and source, of its faded loads: max < mean + band + 1 message, for no
worker beyond that is ever chosen, and one below the mean always exists. The rule, the reasons for
its five constants and the proof are in docs/graded.md.
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
from skewless.sketch.recent import F32, LONGEST, add, divide_down, recent

AIM = 0.35  # of the target is the band's half width: the rest is for messages and for sources
FEW = 1.5  # messages are added to it, which are nothing later, if there is ballast to repay them:
ENOUGH = 0.05  # of the stream, or in proportion less
LEAST = 0.5  # of a message is added anyway, which is what rounding leaves
HOT = 1 / 4  # of the mean load, or of the hottest key's load if that is more, makes a key hot
MOVED = 1 << 14  # places in which keys that moved are remembered
LOOKS = 32  # of a key's choices are looked at, from where it is, for one that it has used before
KNOWN = 64  # of its choices are known as used or not; beyond, all count up to the furthest
BLOCK = 256  # messages are hashed at a time
TAG, WORKER, NTH, WIDTH = range(4)  # columns of `moved`
# What `sums` holds: faded loads, but for the gain, which is what a message of weight 1 adds now.
MEAN, GAIN, MESSAGES, BALLAST, HOTTEST = range(5)
# What `band` holds until it is renewed: the bits of a hot key's load, the grade of one bit, the
# band's half width.
HEAT_BITS, GRADE, WIDE = range(3)
_LARGEST_GAIN = 2.0**60


class GradedPlan(NamedTuple):
    """Seeds, the target, and what earlier batches left uneven."""

    workers: I64  # [1]
    prime: I64  # [1] least prime ≥ workers
    seeds: U64  # [2]
    target: F64  # [1]
    growth: F64  # [1] of the gain, per message
    rates: F64  # [W] capacity ÷ mean capacity
    start: F64  # [W] a source's share of what earlier batches left uneven


class GradedTally(NamedTuple):
    """Faded loads of workers and keys, the band around their mean, and who moved where."""

    loads: F64  # [W] load ÷ rate
    sums: F64  # [5] see above
    band: F64  # [3] see above
    laggard: I64  # [2] the worker that lags, messages until it and the band are renewed
    counts: F32  # [2, columns] loads of keys
    moved: I32  # [MOVED, 4] bits of a key's hash, where it is, which of its choices, of how many
    used: U64  # [MOVED] which of the first KNOWN choices the key has used, as bits
    hashes: U64  # [2, BLOCK] room for `route`


class GradedReport(NamedTuple):
    """What the sources sent, beyond the loads they started from."""

    loads: F64  # [W] per capacity
    sources: I64  # [1]


@inlined
def _bits(load: float) -> float:
    """A logarithm: the bits of a float are its exponent, and then its mantissa."""
    return np.float64(np.float32(load).view(np.int32))


@inlined
def _bit(nth: np.int64) -> np.uint64:
    """The bit of a choice in `used`; none beyond those known."""
    return np.uint64(1) << np.uint64(nth - 1) if nth <= KNOWN else np.uint64(0)


@compiled
def _renew(plan: Any, tally: Any) -> None:
    """Let everything fade, find the worker that lags, and set the band: once in W messages."""
    loads, sums, band = tally.loads, tally.sums, tally.band
    workers, target = plan.workers[0], plan.target[0]
    sums[GAIN] *= math.pow(plan.growth[0], float(workers))
    if sums[GAIN] > _LARGEST_GAIN:
        _divide_down(tally, _LARGEST_GAIN)
    lowest = 0
    for worker in range(1, workers):
        if loads[worker] < loads[lowest]:
            lowest = worker
    tally.laggard[0] = lowest
    tally.laggard[1] = workers
    mean, total, message = sums[MEAN], sums[MEAN] * workers, sums[GAIN]
    repaid = 0.0
    if total > 0:
        message *= total / sums[MESSAGES]
        repaid = min(1.0, sums[BALLAST] / (ENOUGH * total))
    heat = max(message, HOT * max(mean, sums[HOTTEST]))
    band[HEAT_BITS] = _bits(heat)
    band[GRADE] = 1.0 / max(1.0, band[HEAT_BITS] - _bits(target * heat))
    band[WIDE] = AIM * target * mean + (LEAST + FEW * repaid) * message


@compiled
def _divide_down(tally: Any, by: float) -> None:
    """Bring the gain back down; by a power of two, which rounds nothing."""
    for worker in range(tally.loads.size):
        tally.loads[worker] /= by
    for part in range(tally.sums.size):
        tally.sums[part] /= by
    divide_down(tally.counts, by)


@inlined
def _second(hashed: np.uint64, first: np.int64, workers: np.int64) -> np.int64:
    """The second choice, from its hash."""
    second = scale(hashed, np.uint64(workers - 1))
    return second + np.int64(second >= first)


@inlined
def _look_on(
    plan: Any,
    loads: F64,
    hashed: np.uint64,
    first: np.int64,
    place: tuple[np.int64, np.int64, np.int64, np.uint64],
    limits: tuple[float, float],
) -> tuple[np.int64, np.int64, np.int64]:
    """The next of the key's own workers below the mean, else one that is not full, else a new one.

    `hashed` is the hash of its second choice; `place` is a worker, which of the key's choices it
    is, the furthest it has used, and which of those before; `limits` are the mean, and the load at
    which a worker is full.
    """
    workers, prime = plan.workers[0], plan.prime[0]
    worker, nth, width, used = place
    mean, full = limits
    step = stride(first, _second(hashed, first, workers), prime)
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
    for _ in range(workers):  # enough to find one, unless a message weighs nothing
        if loads[worker] < full:
            break
        worker = next_choice(worker, step, workers, prime)
        nth = nth + 1 if nth < workers else np.int64(1)
    return worker, nth, max(width, nth)


@inlined
def _send(plan: Any, tally: Any, hashed: np.uint64, other: np.uint64, weight: float) -> np.int64:
    """Where the key is, unless that worker is full for a key as hot as this or another lags.

    `hashed` and `other` are the hashes of the key's first two choices. What most messages need is
    computed without a branch: a wrong guess of the processor costs as much as all of it.
    """
    loads, sums, band, laggard = tally.loads, tally.sums, tally.band, tally.laggard
    workers = plan.workers[0]
    if laggard[1] == 0:
        _renew(plan, tally)
    laggard[1] -= 1
    added = sums[GAIN] * weight
    mean = sums[MEAN] + added / workers
    sums[MEAN] = mean
    sums[MESSAGES] += sums[GAIN]
    count = np.float64(add(tally.counts, hashed, added))
    sums[HOTTEST] = max(sums[HOTTEST], count)
    grade = min(1.0, max(0.0, (band[HEAT_BITS] - _bits(count)) * band[GRADE]))
    hot = grade == 0.0
    sums[BALLAST] += added if hot else 0.0
    first = scale(hashed, np.uint64(workers))
    tag = np.int32(hashed >> np.uint64(16))
    number = np.int64(hashed & np.uint64(MOVED - 1))
    moved = tally.moved[number]
    found, there, furthest = moved[TAG], np.int64(moved[WORKER]), np.int64(moved[WIDTH])
    known = (found == tag) & (furthest > 0)
    worker = there if known else first
    width = furthest if known else np.int64(1)
    full, low = mean + grade * band[WIDE], mean - (1.0 + grade) * band[WIDE]
    lowest, load = loads[laggard[0]], loads[worker]
    if lowest < low or load >= (mean if width > 1 else full):
        before = worker
        nth = np.int64(moved[NTH]) if known else np.int64(1)
        used = tally.used[number] if known else np.uint64(1)
        if lowest < low and hot:
            worker = laggard[0]
        else:
            if lowest < low and workers > 1:
                second = _second(other, first, workers)
                if loads[second] < min(low, loads[worker]):
                    worker, nth, width = second, np.int64(2), max(width, np.int64(2))
                elif loads[first] < min(low, loads[worker]):
                    worker, nth = first, np.int64(1)
            if loads[worker] >= (mean if width > 1 else full):
                place, limits = (worker, nth, width, used), (mean, full)
                worker, nth, width = _look_on(plan, loads, other, first, place, limits)
            if worker != before:
                moved[TAG], moved[WORKER], moved[NTH], moved[WIDTH] = tag, worker, nth, width
                tally.used[number] = used | _bit(nth)
        load = loads[worker]
    loads[worker] = load + added / plan.rates[worker]
    return worker


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The worker of a message."""
    hashed, other = hash_long(key, plan.seeds[0]), hash_long(key, plan.seeds[1])
    return int(_send(plan, tally, hashed, other, weight))


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is hashed first, many keys at once.

    So when the processor has guessed wrong where a message goes, it need not wait for the hash.
    """
    hashes = tally.hashes
    step = 1 if weights.size == keys.size else 0
    for start in range(0, keys.size, BLOCK):
        stop = min(start + BLOCK, keys.size)
        for i in range(start, stop):
            hashes[0, i - start] = hash_long(keys[i], plan.seeds[0])
            hashes[1, i - start] = hash_long(keys[i], plan.seeds[1])
        for i in range(start, stop):
            hashed, other = hashes[0, i - start], hashes[1, i - start]
            out[i] = _send(plan, tally, hashed, other, weights[i * step])


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: the load of a worker becomes the true one, and the mean follows."""
    if kind == TRUE_LOAD:
        load = signal[0] * tally.sums[GAIN]
        change = (load - tally.loads[worker]) * plan.rates[worker]
        tally.sums[MEAN] += change / plan.workers[0]
        tally.loads[worker] = load


@dataclass(frozen=True)
class GradedChoices(Scheme):
    """Graded choices, with skew, cost and unequal machines in one router.

    target: how far above the mean the most loaded worker may be: 0.01 is max/mean ≤ 1.01.
    half_life: messages per worker, of one source, after which a message counts half.
    """

    target: float = 0.01
    half_life: float = 8_000.0

    name: ClassVar[str] = "graded"
    knows_costs: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)
    route: ClassVar[Any] = staticmethod(route)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        if not 0 < self.target <= 1:
            raise SkewlessError(
                f"graded:target is how far max/mean may exceed 1, above 0 and up to 1, "
                f"not {self.target}."
            )
        if not 1 <= self.half_life <= LONGEST:
            raise SkewlessError(
                f"graded:half_life is from 1 to {LONGEST:,.0f} messages per worker, "
                f"not {self.half_life}."
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
            growth=np.array([2.0 ** (1.0 / (self._half_life(workers) * workers))]),
            rates=rates / rates.mean(),
            start=np.zeros(workers),
        )

    def tally(self, plan: GradedPlan, source: int) -> GradedTally:
        """Nothing seen; loads from the plan."""
        total = float((plan.start * plan.rates).sum())
        return GradedTally(
            loads=plan.start.copy(),
            sums=np.array([total / plan.workers[0], 1.0, total, 0.0, 0.0]),
            band=np.zeros(3),
            laggard=np.zeros(2, np.int64),
            counts=recent(),
            moved=np.zeros((MOVED, 4), np.int32),
            used=np.zeros(MOVED, np.uint64),
            hashes=np.zeros((2, BLOCK), np.uint64),
        )

    def report(self, plan: GradedPlan, tally: GradedTally) -> GradedReport:
        """Loads as of now; a source that sent nothing does not count."""
        loads = tally.loads / tally.sums[GAIN] - plan.start
        return GradedReport(loads, np.array([int(loads.any())]))

    def merge(self, a: GradedReport, b: GradedReport) -> GradedReport:
        """Loads and sources add up."""
        return GradedReport(a.loads + b.loads, a.sources + b.sources)

    def replan(self, plan: GradedPlan, report: GradedReport, feedback: Feedback) -> GradedPlan:
        """Carry what is still uneven into the next batch, each source its share of it."""
        uneven = plan.start + report.loads / max(1, int(report.sources[0]))
        return plan._replace(start=uneven - uneven.min())

    def excess(self, mean: float, workers: int) -> float:
        """How far above its mean a source's fullest worker can be since the start, for any stream.

        `mean` is its messages per worker, each of weight 1; the result is a part of it.
        docs/graded.md has the proof.
        """
        few = LEAST + FEW + 1
        return AIM * self.target + few / mean + few * math.log(2) / self._half_life(workers)

    def _half_life(self, workers: int) -> float:
        """In renewals, each of a message per worker."""
        return min(self.half_life, LONGEST / workers)

    def remark(self, loads: I64, sources: int) -> str | None:
        """Whether the target was missed, and what that takes."""
        uneven = float(loads.max() / loads.mean()) - 1
        if uneven <= self.target:
            return None
        each = loads.mean() / sources
        room = self.target - self.excess(math.inf, loads.size)
        if room <= 0:
            why = f"a half-life of {self.half_life:g} messages per worker is too short for it."
        elif (LEAST + FEW + 1) / room < each:
            why = "probing changed the loads that its sources go by."
        else:
            why = (
                f"a source sends each worker {each:.0f} messages, and the target is sure only from "
                f"about {(LEAST + FEW + 1) / room:.0f} on."
            )
        return f"max/mean is {1 + uneven:.4g}, above the target of {1 + self.target:g}: {why}"
