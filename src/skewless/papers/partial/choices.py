"""D-Choices and W-Choices beside key, partial and shuffle grouping: balance and its price.

Nasir et al., "When Two Choices Are Not Enough" (ICDE 2016): imbalance and memory against the number
of workers and the skew. Memory is the number of distinct keys of each worker, summed. 1,000,000
messages over 10,000 keys from 5 sources, the median of 5 seeds (of 3 in the quick size).

Tolerances: the bars of D-Choices and W-Choices at W = 50 are stated for this very setting.
W-Choices is even up to a message or so of each source; D-Choices aims at ε = 1e-4.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from skewless.results import Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.simulate.balance import Case, balance_all

SCHEMES = ("key", "partial", "d-choices", "w-choices", "shuffle")
MESSAGES, KEYS, SOURCES = 1_000_000, 10_000, 5
# Distinct keys over the workers that D-Choices may need at W = 50, and the public code's figure
# for W-Choices at z = 1, whose summary is too small to tell head from tail.
MOST_PAIRS = {1.0: 19_300, 1.5: 9_600}
DEGENERATE_PAIRS = 216_063


class Seen(NamedTuple):
    """Medians over the seeds."""

    imbalance: float
    pairs: float  # distinct keys of each worker, summed
    replication: float


def _medians(z: float, cases: Sequence[Case], setting: Setting) -> list[Seen]:
    stream = f"zipf:z={z:g},keys={KEYS},messages={MESSAGES}"
    count = 3 if setting.quick else 5
    runs = [
        balance_all(stream, cases, seed=seed) for seed in range(setting.seed, setting.seed + count)
    ]
    setting.step(stream)
    return [
        Seen(
            median(r.imbalance for r in same),
            median(r.replication * r.keys for r in same),
            median(r.replication for r in same),
        )
        for same in zip(*runs, strict=True)
    ]


def _row(z: float, case: Case, seen: Seen) -> dict[str, Any]:
    return {
        "zipf": z,
        "workers": case.workers,
        "scheme": str(case.scheme),
        "imbalance": seen.imbalance,
        "distinct_keys": seen.pairs,
        "replication": seen.replication,
    }


def workers(setting: Setting) -> Reproduction:
    """Imbalance and memory against the number of workers, 5 … 1000."""
    each = (5, 20, 50, 200, 1000) if setting.quick else (5, 10, 20, 50, 100, 200, 500, 1000)
    rows: list[dict[str, Any]] = []
    checks, panels = [], []
    for z in (1.0, 1.5):
        cases = [Case(scheme, w, SOURCES) for w in each for scheme in SCHEMES]
        found = _medians(z, cases, setting)
        rows += [_row(z, case, seen) for case, seen in zip(cases, found, strict=True)]
        value = {(str(c.scheme), c.workers): s for c, s in zip(cases, found, strict=True)}
        d_50, w_50 = value["d-choices", 50], value["w-choices", 50]
        checks += [
            at_most(f"z = {z}, W = 50: W-Choices' imbalance", w_50.imbalance, 1e-5),
            at_most(f"z = {z}, W = 50: D-Choices' imbalance", d_50.imbalance, 1e-4),
            at_most(
                f"z = {z}, W = 50: D-Choices' distinct keys, summed", d_50.pairs, MOST_PAIRS[z]
            ),
            at_most(
                f"z = {z}, W = 50: W-Choices' memory, share of shuffle's",
                w_50.pairs / value["shuffle", 50].pairs,
                0.5,
            ),
            at_least(
                f"z = {z}, W = 1000: two choices are not enough, partial's imbalance",
                value["partial", 1000].imbalance,
                1e-2,
            ),
            at_most(
                f"z = {z}, every W: W-Choices' largest imbalance",
                max(value["w-choices", w].imbalance for w in each),
                2e-5,
            ),
            at_most(
                f"z = {z}, W ≥ 50: D-Choices' largest imbalance",
                max(value["d-choices", w].imbalance for w in each if w >= 50),
                1e-4,
            ),
            at_most(
                f"z = {z}, every W: D-Choices' memory, largest ratio to W-Choices'",
                max(value["d-choices", w].pairs / value["w-choices", w].pairs for w in each),
                1.02,
            ),
        ]
        if z == 1.0:
            checks.append(
                at_most(
                    "z = 1.0, W = 50: W-Choices' distinct keys, share of the public code's",
                    w_50.pairs / DEGENERATE_PAIRS,
                    0.25,
                )
            )
        panels += _panels(f"z = {z}", "workers", each, value, log_x=True)
    return Reproduction(
        "choices-workers",
        "D-Choices and W-Choices: imbalance and memory against the number of workers",
        rows,
        checks,
        panels,
        [
            "D-Choices' d suffices for the expected share of the workers that the head's choices "
            "reach. Where the head is few keys (z = 1.5, W ≤ 20), choices that overlap by bad luck "
            "left an imbalance of 1e-3 to 7e-3 under some seeds; W-Choices has no such luck."
        ],
    )


def skew(setting: Setting) -> Reproduction:
    """Imbalance and memory against the skew at W = 50."""
    each = (0.2, 0.8, 1.2, 2.0) if setting.quick else (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 1.8, 2.0)
    rows: list[dict[str, Any]] = []
    value: dict[tuple[str, Any], Seen] = {}
    for z in each:
        cases = [Case(scheme, 50, SOURCES) for scheme in SCHEMES]
        for case, seen in zip(cases, _medians(z, cases, setting), strict=True):
            rows.append(_row(z, case, seen))
            value[str(case.scheme), z] = seen
    checks = [
        at_most(
            "at every skew: W-Choices' largest imbalance",
            max(value["w-choices", z].imbalance for z in each),
            1e-5,
        ),
        at_most(
            "at every skew: D-Choices' largest imbalance",
            max(value["d-choices", z].imbalance for z in each),
            1e-4,
        ),
        at_least(
            "z = 1.2: partial's imbalance ÷ D-Choices'",
            value["partial", 1.2].imbalance / value["d-choices", 1.2].imbalance,
            100,
        ),
        at_most(
            "z = 0.2: without a head D-Choices costs what partial does, memory's ratio",
            value["d-choices", 0.2].pairs / value["partial", 0.2].pairs,
            1.01,
        ),
        at_most(
            "at every skew: D-Choices' memory, largest share of shuffle's",
            max(value["d-choices", z].pairs / value["shuffle", z].pairs for z in each),
            0.3,
        ),
    ]
    return Reproduction(
        "choices-skew",
        "D-Choices and W-Choices: imbalance and memory against the skew, W = 50",
        rows,
        checks,
        _panels("W = 50", "Zipf exponent", each, value),
    )


def _panels(
    title: str,
    x_label: str,
    each: Sequence[float],
    value: dict[tuple[str, Any], Seen],
    log_x: bool = False,
) -> list[Panel]:
    even = 1 / MESSAGES  # an imbalance of 0 has no place on a logarithmic axis
    return [
        Panel(
            title,
            x_label,
            "imbalance",
            [Line(s, each, [max(even, value[s, at].imbalance) for at in each]) for s in SCHEMES],
            log_x=log_x,
            log_y=True,
        ),
        Panel(
            title,
            x_label,
            "distinct keys over all workers",
            [Line(s, each, [value[s, at].pairs for at in each]) for s in SCHEMES],
            log_x=log_x,
            log_y=True,
        ),
    ]
