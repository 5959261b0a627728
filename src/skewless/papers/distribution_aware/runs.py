"""The streams of the distribution-aware paper (section 5.1) and how schemes are judged on them.

A stream has 100,000 messages with Zipf-distributed keys; each of the 10,000 ranks stands for
a value drawn without replacement from one million. 80,000 messages are to learn from, and loads
are counted on the last 20,000. Every stream has values and hash functions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from skewless import measures
from skewless.results import Setting
from skewless.schemes import scheme_of
from skewless.schemes.api import F64, U64, Scheme
from skewless.simulate.sources import Estimate, Sources

RANKS = 10_000
VALUES = 100 * RANKS
TO_LEARN, TO_JUDGE = 80_000, 20_000
DEFAULT_STREAMS, QUICK_STREAMS = 200, 20


class Run(NamedTuple):
    """A scheme on k instances. With several functions, each stream is judged under each."""

    scheme: str
    workers: int
    learn: int = TO_LEARN
    power: int = 1  # a key's load is its count to this power
    functions: int = 1


class Drawn(NamedTuple):
    """One stream."""

    learned: U64  # [80,000]
    judged: U64  # [20,000]
    keys: U64  # [n] the distinct keys of the judged part
    counts: F64  # [n]


class Spread(NamedTuple):
    """A measure over many streams."""

    mean: float
    worst: float


Loads = dict[Run, list[F64]]  # of each stream in turn


def streams_of(setting: Setting, part: float = 1.0) -> int:
    """How many streams: as asked, or the default of the size; costly figures take a part of it."""
    if setting.streams is not None:
        return setting.streams
    return max(1, int(part * (QUICK_STREAMS if setting.quick else DEFAULT_STREAMS)))


@cache
def _cumulated(z: float) -> F64:
    shares = np.arange(1, RANKS + 1, dtype=np.float64) ** -z
    return np.cumsum(shares) / shares.sum()


def draw(z: float, seed: int) -> Drawn:
    """A stream of Zipf-z."""
    random = np.random.default_rng([seed, round(1000 * z)])
    values = random.choice(VALUES, RANKS, replace=False).astype(np.uint64) + np.uint64(1)
    drawn = random.random(TO_LEARN + TO_JUDGE)
    messages = values[np.minimum(np.searchsorted(_cumulated(z), drawn), RANKS - 1)]
    judged = messages[TO_LEARN:]
    keys, counts = np.unique(judged, return_counts=True)
    return Drawn(messages[:TO_LEARN], judged, keys, counts.astype(np.float64))


def judge(run: Run, drawn: Drawn, seed: int) -> F64:
    """The loads of the workers on the judged part, after learning."""
    scheme = _scheme(run)
    system = Sources(scheme, run.workers, 1, seed, Estimate())
    if scheme.learns == "prefix":
        system.route(drawn.learned[: run.learn])
    elif scheme.learns == "stream":
        system.route(drawn.judged)
        system.adopt(system.learned_plan())
    if scheme.one_worker_per_key:
        routed, weights = system.route(drawn.keys), drawn.counts**run.power
    else:
        routed, weights = system.route(drawn.judged), np.ones(drawn.judged.size)
    return np.bincount(routed, weights, minlength=run.workers).astype(np.float64)


@cache
def _scheme(run: Run) -> Scheme:
    scheme = scheme_of(run.scheme)
    if scheme.learns == "prefix" and scheme.learning_messages != run.learn:
        return scheme_of(f"{run.scheme}{',' if ':' in run.scheme else ':'}learn={run.learn}")
    return scheme


def judge_all(z: float, runs: Sequence[Run], setting: Setting, streams: int | None = None) -> Loads:
    """Every run on every stream of Zipf-z."""
    loads: Loads = {run: [] for run in runs}
    count = streams or streams_of(setting)
    for stream in range(count):
        seed = setting.seed * 100_003 + stream
        drawn = draw(z, seed)
        for run in runs:
            for function in range(run.functions):
                loads[run].append(judge(run, drawn, (seed * 128 + function) % 2**30))
    setting.step(f"Zipf-{z:g}, {count} streams")
    return loads


def spread(loads: Sequence[F64], measure: Callable[[F64], float]) -> Spread:
    """Mean and worst of a measure of the loads."""
    seen = [measure(each) for each in loads]
    return Spread(float(np.mean(seen)), max(seen))


def imbalance(loads: Sequence[F64]) -> Spread:
    """λ, in per cent."""
    return spread(loads, measures.percent_imbalance)


def deviation(loads: Sequence[F64]) -> Spread:
    """σ, in messages (or in what a load is made of)."""
    return spread(loads, measures.stddev)


def row(z: float, run: Run, loads: Sequence[F64], **more: Any) -> dict[str, Any]:
    """A line of the CSV."""
    by_imbalance, by_deviation = imbalance(loads), deviation(loads)
    return {
        "zipf": z,
        "scheme": run.scheme,
        "workers": run.workers,
        "learned": run.learn,
        **more,
        "streams": len(loads),
        "imbalance_percent_mean": by_imbalance.mean,
        "imbalance_percent_worst": by_imbalance.worst,
        "stddev_mean": by_deviation.mean,
        "stddev_worst": by_deviation.worst,
    }
