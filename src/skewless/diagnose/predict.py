"""What each candidate would bring: the real scheme, run on the sample as Spark's tasks run it.

Each source of the sample is a task with a tally of its own, as in `skewless.spark`. A scheme that
learns gets its plan from a random tenth of the messages, as `skewless.spark.learn` does, and then
routes them all. The job is done when the most loaded worker is, so the time ÷ ideal is the largest
sum of costs of a worker divided by the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from skewless.diagnose.sample import F64, I32, Sample
from skewless.errors import SkewlessError
from skewless.hashing import U64
from skewless.schemes import Feedback, Scheme, scheme_of
from skewless.schemes.api import check_workers
from skewless.schemes.full_knowledge import FullKnowledge
from skewless.simulate.replication import PairCounter

MOST_WORKERS = 200_000  # whose schemes still find room for all their counters
LEARN_FROM = 0.1  # the default of skewless.spark.learn


@dataclass(frozen=True)
class Candidate:
    """One way to do the work; the fields of `candidates` in JSON.

    max_over_mean: messages of the fullest worker ÷ those of the average one
    replication: workers per key, which is the copies of a key's state
    time_over_ideal: time until the last worker is done ÷ the time with perfectly even work
    loads: the share of all work that each worker gets
    """

    scheme: str
    max_over_mean: float
    replication: float
    time_over_ideal: float
    loads: list[float]


def check_predictable(workers: SupportsIndex) -> int:
    """The number of workers as an int; more than predictions can be made for are refused."""
    count = check_workers(workers)
    if count > MOST_WORKERS:
        raise SkewlessError(
            f"A diagnosis predicts the work of at most {MOST_WORKERS:,} workers, not of "
            f"{count:,}: give fewer."
        )
    return count


def predict(
    sample: Sample,
    schemes: Sequence[str],
    workers: int,
    seed: int = 0,
    step: Callable[[str], None] = lambda done: None,
) -> list[Candidate]:
    """Each scheme on the sample."""
    made = []
    for spec in schemes:
        # What balanced_map learned of the costs, it shares out as full knowledge of them would.
        scheme = scheme_of("full-knowledge" if spec == "proactive" else spec)
        if workers >= scheme.least_workers:
            routed = route_as_tasks(scheme, sample, workers, seed)
            made.append(judged(spec, sample, routed, workers))
        step(spec)
    return made


def route_as_tasks(scheme: Scheme, sample: Sample, workers: int, seed: int) -> I32:
    """The worker of each message, where each source routes by itself under one plan."""
    plan: Any = scheme.plan(workers, seed)
    places = _places(sample.sources)
    if scheme.learns == "prefix":
        plan = _learned(scheme, plan, sample, places, workers, seed)
    # Only balanced_map tells Spark's tasks what a row costs; to all others rows are equal.
    weights = _known_costs(sample) if isinstance(scheme, FullKnowledge) else None
    out = np.empty(sample.keys.size, np.int32)
    for source, where in enumerate(places):
        tally: Any = scheme.tally(plan, source)
        own = None if weights is None else weights[where]
        out[where] = _route(scheme, plan, tally, sample.keys[where], own)[0]
    return out


def judged(name: str, sample: Sample, routed: I32, workers: int) -> Candidate:
    """How even a route is."""
    counts = np.bincount(routed, minlength=workers)
    work: F64 = counts.astype(np.float64)
    if sample.costs is not None:
        work = np.bincount(routed, sample.costs, minlength=workers).astype(np.float64)
    pairs = PairCounter(workers)
    pairs.add(sample.keys, routed)
    counted = pairs.count()
    total = float(work.sum()) or 1.0
    return Candidate(
        scheme=name,
        max_over_mean=float(counts.max() / counts.mean()),
        replication=counted.pairs / max(counted.keys, 1),
        time_over_ideal=float(work.max() * workers / total),
        loads=(work / total).tolist(),
    )


def _places(sources: I32) -> list[Any]:
    """For each source that sent something, where in the sample its messages are."""
    order = np.argsort(sources, kind="stable")
    starts = np.flatnonzero(np.diff(sources[order], prepend=-1))
    return np.split(order, starts[1:])


def _learned(
    scheme: Scheme, first: Any, sample: Sample, places: list[Any], workers: int, seed: int
) -> Any:
    """The plan that the driver would make of the reports of all sources."""
    chosen = np.random.default_rng(seed).random(sample.keys.size) < LEARN_FROM
    if not chosen.any():
        chosen[:] = True
    report: Any = None
    for source, where in enumerate(places):
        keys = sample.keys[where[chosen[where]]]
        if not keys.size:
            continue
        tally: Any = scheme.tally(first, source)
        _, tally = _route(scheme, first, tally, keys, None)
        own = scheme.report(first, tally)
        report = own if report is None else scheme.merge(report, own)
    plan: Any = scheme.replan(first, report, Feedback.none(workers))
    return plan._replace(start=np.zeros(workers)) if "start" in plan._fields else plan


def _route(
    scheme: Scheme, plan: Any, tally: Any, keys: U64, weights: F64 | None
) -> tuple[I32, Any]:
    """The workers of one source's messages, and its tally after them."""
    out = np.empty(keys.size, np.int32)
    tally = scheme.reserve(tally, keys.size)
    times = np.arange(keys.size, dtype=np.float64)
    own = np.broadcast_to(np.ones(1), keys.size) if weights is None else weights
    scheme.route(plan, tally, np.ascontiguousarray(keys), own, times, out)
    return out, tally


def _known_costs(sample: Sample) -> F64 | None:
    """What a scheme that learned the costs expects of each message: the mean of its key."""
    if sample.costs is None:
        return None
    _, which = np.unique(sample.keys, return_inverse=True)
    means = np.bincount(which, sample.costs) / np.bincount(which)
    return np.asarray(means[which])
