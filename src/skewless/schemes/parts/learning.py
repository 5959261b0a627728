"""What sources learn of the keys for a plan: the frequent ones, and the load of hash buckets.

A tally that learns has a `summary`, `buckets` in the summary's units, and a count `seen`; a plan
that remembers earlier epochs has `known` and `known_buckets`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import allocating, inlined
from skewless.hashing import hash_long, scale
from skewless.schemes.api import F64, I64, U64
from skewless.sketch.space_saving import GAIN_LIMIT, Summary, add, merge, renormalise, summarise


class LearningReport(NamedTuple):
    """What the sources learned."""

    summary: Summary
    buckets: F64  # [b]
    messages: I64  # [1]
    sources: I64  # [1] that saw any


@inlined
def learn(tally: Any, key: np.uint64, bucket: np.int64, weight: float) -> None:
    """Count a message of a key that lies in this bucket."""
    summary, buckets = tally.summary, tally.buckets
    if summary.gain[0] > GAIN_LIMIT:
        for b in range(buckets.size):
            buckets[b] /= summary.gain[0]
        renormalise(summary)
    buckets[bucket] += weight * summary.gain[0]
    add(summary, key, weight)
    tally.seen[0] += 1


@allocating
def buckets_of(keys: U64, seeds: U64, buckets: int) -> I64:
    """The bucket of each key, by its first choice's hash."""
    out = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        out[i] = scale(hash_long(keys[i], seeds[0]), np.uint64(buckets))
    return out


def report_of(tally: Any) -> LearningReport:
    """What was counted, as of now."""
    return LearningReport(
        summarise(tally.summary),
        tally.buckets / tally.summary.gain,
        tally.seen.copy(),
        np.array([int(tally.seen[0] > 0)]),
    )


def merge_reports(a: LearningReport, b: LearningReport) -> LearningReport:
    """Summaries merge within the sum of their errors; buckets and messages add up."""
    return LearningReport(
        merge(a.summary, b.summary),
        a.buckets + b.buckets,
        a.messages + b.messages,
        a.sources + b.sources,
    )


def faded_messages(report: LearningReport, half_life: float | None) -> float:
    """How many messages the report's total stands for: with a half-life, older ones count less."""
    if half_life is None:
        return float(report.messages[0])
    rate, sources = math.log(2) / half_life, float(report.sources[0])
    if rate == 0:  # so long that nothing fades
        return float(report.messages[0])
    each = float(report.messages[0]) / sources
    return sources * math.expm1(-rate * each) / math.expm1(-rate)


def remember(
    plan: Any, report: LearningReport, half_life: float | None
) -> tuple[Any, Summary, F64]:
    """The plan with what it shall remember, and the keys and buckets to plan by.

    Without a half-life only this report counts; with it, earlier epochs count too, ever less.
    """
    if half_life is None:
        return plan, report.summary, report.buckets
    kept = 0.5 ** (float(report.messages[0] / report.sources[0]) / half_life)
    known = merge(report.summary, _scaled(plan.known, kept))
    counted = report.buckets + kept * plan.known_buckets
    return plan._replace(known=known, known_buckets=counted), known, counted


def _scaled(summary: Summary, share: float) -> Summary:
    return summary._replace(
        counts=summary.counts * share,
        errors=summary.errors * share,
        missing=summary.missing * share,
        total=summary.total * share,
    )
