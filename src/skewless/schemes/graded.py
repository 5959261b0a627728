"""Graded choices: a key leaves a full worker the sooner the hotter it is.

Every key has all workers as its choices, in an order of its own. It stays where it is until that
worker is full for it; only if all that it has used are full does it go to the next in its order. A
key with several workers takes the least loaded of the next four, in turn. Around the mean is a band
of a few messages and a part of the target. For a cold key a worker is full at the band's upper
edge, for a hot key at the mean, and for keys between by the logarithm of their own load; but no key
leaves a worker that is not a message above the mean. So hot keys give way to cold ones and even out
whatever those do; cold keys stay where their hash puts them; no key uses more workers than it must.
A worker below the band is topped up: by hot keys, and further below also by keys that have it as
their first or second choice. Nothing is planned; everything fades, so drift is followed.

What holds for every stream and source, of its faded loads: max < mean + band + 1 message, for no
worker beyond that is ever chosen, and one below the mean always exists. The rule, the reasons for
its six constants and the proof are in docs/graded.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import pick
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, least_prime, scale
from skewless.schemes.api import F64, I64, TRUE_LOAD, U64, Feedback, Scheme, check_workers
from skewless.schemes.parts.own_workers import (
    Places,
    empty_places,
    keep_turn,
    least_loaded,
    next_own,
    next_that_fits,
    own_that_fits,
    place_of,
    remember,
)
from skewless.schemes.parts.sharing import shared_out
from skewless.schemes.parts.sums import (
    BALLAST,
    GAIN,
    GRADE,
    GROWTH,
    HEAT_BITS,
    HOTTEST,
    LAGGARD,
    LENGTH,
    MEAN,
    MESSAGES,
    PATIENT,
    SENT,
    WIDE,
    Round,
    Sums,
    bits_of,
    keep_sums,
    round_of,
    sums_of,
)
from skewless.sketch.recent import F32, LONGEST, add, divide_down, recent

AIM = 0.35  # of the target is the band's half width: the rest is for messages and for sources
FEW = 1.5  # messages are added to it, which are nothing later, if there is ballast to repay them:
ENOUGH = 0.05  # of the stream, or in proportion less
LEAST = 0.5  # of a message is added anyway, which is what rounding leaves
PATIENCE = 1.0  # messages above the mean is a worker before any key leaves it
HOT = 1 / 4  # of the mean load, or of the hottest key's load if that is more, makes a key hot
PLACES = 1 << 14  # in which the workers of keys that moved are remembered
ROUND = 64  # messages in which the band stays as it is, or one for each worker if that is more
BLOCK = 256  # messages are hashed at a time
_AHEAD = max(LEAST + FEW, PATIENCE) + 1.0  # messages, at most, is a worker above the band's part
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
    sources: F64 = np.zeros(1)  # [1] that `start` was divided by; 0 = nothing was reported yet


class GradedTally(NamedTuple):
    """Faded loads of workers and keys, the band around their mean, and who moved where."""

    loads: F64  # [W] load ÷ rate
    efforts: F64  # [W] 1 ÷ rate
    sums: F64  # [5] parts/sums.py
    band: F64  # [5] parts/sums.py
    round: I64  # [3] parts/sums.py
    counts: F32  # loads of keys: sketch/recent.py
    moved: Places  # the workers of keys that moved: parts/own_workers.py
    hashes: U64  # [BLOCK] room for `route`


class GradedReport(NamedTuple):
    """What the sources sent, beyond the loads they started from."""

    loads: F64  # [W] per capacity
    sources: I64  # [1]


@compiled
def _begin_round(plan: Any, tally: Any) -> None:
    """Let everything fade, set the band, and find who has the least load."""
    sums, band = tally.sums, tally.band
    workers, target = plan.workers[0], plan.target[0]
    sums[GAIN] *= band[GROWTH]
    while sums[GAIN] > _LARGEST_GAIN:  # it may have passed it twice: a round may be many half-lives
        _divide_down(tally, _LARGEST_GAIN)
    mean, total, message = sums[MEAN], sums[MEAN] * workers, sums[GAIN]
    repaid = 0.0
    if ENOUGH * total > 0 and sums[MESSAGES] > 0:  # neither may have faded to the least of floats
        message *= total / sums[MESSAGES]
        repaid = min(1.0, sums[BALLAST] / (ENOUGH * total))
    heat = max(message, HOT * max(mean, sums[HOTTEST]))
    band[HEAT_BITS] = bits_of(heat)
    band[GRADE] = 1.0 / max(1.0, band[HEAT_BITS] - bits_of(target * heat))
    band[WIDE] = AIM * target * mean + (LEAST + FEW * repaid) * message
    band[PATIENT] = PATIENCE * message
    tally.round[LAGGARD] = least_loaded(tally.loads)
    tally.round[SENT] = 0


@compiled
def _divide_down(tally: Any, by: float) -> None:
    """Bring the gain back down; by a power of two, which rounds nothing."""
    for worker in range(tally.loads.size):
        tally.loads[worker] /= by
    for part in range(tally.sums.size):
        tally.sums[part] /= by
    divide_down(tally.counts, by)


@compiled
def _look_further(
    plan: Any,
    tally: Any,
    key: np.uint64,
    hashed: np.uint64,
    known: bool,
    worker: np.int64,
    full: float,
    low: float,
) -> np.int64:
    """Another worker, if the one at hand is full or another lags; it is the key's own from then on.

    A worker that lags, if it is one of the key's first two choices; else one of the key's own that
    is not full; else the next in its order that is not.
    """
    loads, moved, workers = tally.loads, tally.moved, plan.workers[0]
    number, _ = place_of(moved, hashed)
    first = scale(hashed, np.uint64(workers))
    second = scale(hash_long(key, plan.seeds[1]), np.uint64(workers - 1))
    second = min(second + np.int64(second >= first), workers - 1)
    before = worker
    if loads[second] < min(low, loads[before]):
        worker = second
    elif loads[first] < min(low, loads[before]):
        worker = first
    elif loads[before] >= full:
        worker = own_that_fits(moved, loads, number, full) if known else np.int64(-1)
        if worker < 0:  # there is one, unless the message weighs nothing
            worker = next_that_fits(loads, first, second, plan.prime[0], full)
    if worker != before:
        remember(moved, number, hashed, first, worker)
    return worker


@inlined
def _send(
    plan: Any,
    tally: Any,
    key: np.uint64,
    hashed: np.uint64,
    weight: float,
    sums: Sums,
    now: Round,
) -> tuple[np.int64, Sums]:
    """The least loaded of the next four of the key's own workers, unless that is full.

    `hashed` is the hash of its first choice. What most messages need is computed without a branch:
    a wrong guess of the processor costs as much as all of it.
    """
    loads, moved = tally.loads, tally.moved
    mean, messages, ballast, hottest = sums
    workers, laggard, heat_bits, per_bit, wide, patient, gain, share = now
    added = gain * weight
    mean += share * weight
    count = np.float64(add(tally.counts, hashed, added))
    grade = min(1.0, max(0.0, (heat_bits - bits_of(count)) * per_bit))
    hot = grade == 0.0
    ballast += added if hot else 0.0
    number, known = place_of(moved, hashed)
    own, entry = next_own(moved, loads, number)
    keep_turn(moved, number, known, entry)
    first = np.uint64(scale(hashed, np.uint64(workers)))
    worker = pick(known, own, first)
    slack = grade * wide
    load = loads[worker]
    stays = load < mean + max(slack, patient)
    # What lags for any key lags for hot ones too, and that is known before the key's grade is.
    if loads[laggard] < mean - wide or not stays:
        low = mean - wide - slack
        lags = loads[laggard] < low
        if lags and hot:
            worker = laggard
            remember(moved, number, hashed, np.int64(first), np.int64(worker))
        elif lags or not stays:
            full, low = np.inf if stays else mean + slack, low if lags else -np.inf
            on = _look_further(plan, tally, key, hashed, known, np.int64(worker), full, low)
            worker = np.uint64(on)
        load = loads[worker]
    loads[worker] = load + added * tally.efforts[worker]
    return np.int64(worker), (mean, messages + gain, ballast, max(hottest, count))


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The worker of a message."""
    if tally.round[SENT] == tally.round[LENGTH]:
        _begin_round(plan, tally)
    tally.round[SENT] += 1
    hashed, sums, this_round = hash_long(key, plan.seeds[0]), sums_of(tally), round_of(plan, tally)
    worker, sums = _send(plan, tally, key, hashed, weight, sums, this_round)
    keep_sums(tally, sums)
    return int(worker)


@compiled
def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """`choose` for many: a block is hashed first, many keys at once."""
    hashes, length = tally.hashes, tally.round[LENGTH]
    alike = weights.size == 1
    one = weights[0] if alike else 1.0
    for start in range(0, keys.size, BLOCK):
        size = min(np.int64(BLOCK), keys.size - start)
        for i in range(np.uint64(size)):  # unsigned, or numba takes `start + i` for maybe negative
            hashes[i] = hash_long(keys[np.uint64(start) + i], plan.seeds[0])
        done = np.int64(0)
        while done < size:
            if tally.round[SENT] == length:
                _begin_round(plan, tally)
            sent = tally.round[SENT]
            stop = min(size, done + length - sent)
            tally.round[SENT] = sent + stop - done
            sums, now = sums_of(tally), round_of(plan, tally)
            for i in range(np.uint64(done), np.uint64(stop)):
                at = np.uint64(start) + i
                weight = one if alike else weights[at]
                out[at], sums = _send(plan, tally, keys[at], hashes[i], weight, sums, now)
            keep_sums(tally, sums)
            done = stop


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: a worker's load becomes the true one; mean and messages follow, at the same cost."""
    if kind == TRUE_LOAD:
        load, sums = signal[0] * tally.sums[GAIN], tally.sums
        change = (load - tally.loads[worker]) * plan.rates[worker]
        # Where nothing was sent yet a message costs 1, as in what earlier batches left.
        each = sums[MESSAGES] / sums[MEAN] if sums[MEAN] > 0 else float(plan.workers[0])
        sums[MEAN] += change / plan.workers[0]
        sums[MESSAGES] = sums[MEAN] * each
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
        workers = int(plan.workers[0])
        length = max(workers, ROUND)
        return GradedTally(
            loads=plan.start.copy(),
            efforts=1 / plan.rates,
            sums=np.array([total / workers, 1.0, total, 0.0, 0.0]),
            band=np.array([0.0, 0.0, 0.0, 0.0, plan.growth[0] ** length]),
            round=np.array([0, length, length]),
            counts=recent(),
            moved=empty_places(PLACES, workers),
            hashes=np.zeros(BLOCK, np.uint64),
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
        return shared_out(plan, report)

    def excess(self, mean: float, workers: int) -> float:
        """How far above its mean a source's fullest worker can be since the start, for any stream.

        `mean` is its messages per worker, each of weight 1; the result is a part of it.
        docs/graded.md has the proof.
        """
        return AIM * self.target + _AHEAD / mean + _AHEAD * math.log(2) / self._half_life(workers)

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
            half_life = self._half_life(loads.size)
            why = f"a half-life of {half_life:g} messages per worker is too short for it."
        elif _AHEAD / room < each:
            why = "probing changed the loads that its sources go by."
        else:
            why = (
                f"a source sends each worker {each:.0f} messages, and the target is sure only from "
                f"about {_AHEAD / room:.0f} on."
            )
        return f"max/mean is {1 + uneven:.4g}, above the target of {1 + self.target:g}: {why}"
