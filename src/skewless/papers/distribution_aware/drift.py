"""Distribution-aware Key Grouping where the hot keys change: what its authors left open.

Learning once is set beside re-learning, with and without decay and a budget of moves. With one
worker per key, no scheme can be more even in a window than its hottest key allows: p1 − 1/W at
least. So what is compared is the *avoidable* imbalance, above that bound.

Tolerance: re-learning must at least halve the avoidable imbalance; 3.2 to 3.9 times were seen on
the congress's hashtags under several seeds, and more on the synthetic stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless import measures
from skewless.papers.streams import from_file
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.schemes import scheme_of
from skewless.schemes.api import F64, I32, U64, Scheme
from skewless.simulate.sources import Estimate, Sources
from skewless.streams import stream_of

WORKERS, SOURCES = 50, 5
TO_LEARN, EVERY, WINDOW = 80_000, 5_000, 20_000
BUDGET = 0.02
_BASE = f"distribution-aware:theta=0.004,mu=10,learn={TO_LEARN}"
_RELEARN = f"{_BASE},relearn={EVERY}"
OPTIONS = {
    "learn once": _BASE,
    "re-learn": _RELEARN,
    "re-learn, budget 2 %": f"{_RELEARN},budget={BUDGET}",
    "decay, budget 2 %": f"{_RELEARN},budget={BUDGET},half_life={EVERY // SOURCES}",
}


class Course(NamedTuple):
    """What one option did, window by window and replan by replan."""

    imbalances: F64  # [windows]
    moved: list[int]  # keys whose worker changed with each replan
    known: list[int]  # keys seen until then


def drift(setting: Setting) -> Reproduction:
    """Imbalance through time and keys moved, on hashtags of the congress or a synthetic stream."""
    keys = _messages(setting)
    windows = [slice(at, at + WINDOW) for at in range(TO_LEARN, keys.size - WINDOW + 1, WINDOW)]
    bound = np.array([_least_imbalance(keys[w]) for w in windows])
    at = [w.stop for w in windows]
    rows: list[dict[str, Any]] = []
    avoidable, courses = {}, {}
    for label, spec in OPTIONS.items():
        course = courses[label] = _course(scheme_of(spec), keys, windows, setting.seed)
        avoidable[label] = float((course.imbalances - bound).mean())
        rows += [
            {"option": label, "messages": m, "imbalance": float(i), "least_imbalance": float(b)}
            for m, i, b in zip(at, course.imbalances, bound, strict=True)
        ]
        setting.step(label)
    once = avoidable["learn once"]
    checks = [
        at_least(f"{label}: times less avoidable imbalance than learning once", once / seen, 2)
        for label, seen in avoidable.items()
        if label != "learn once"
    ]
    checks += _move_checks(courses)
    panels = [
        Panel(
            f"W = {WORKERS}, windows of {WINDOW:,} messages",
            "messages",
            "imbalance",
            [
                *(Line(label, at, c.imbalances.tolist()) for label, c in courses.items()),
                Line("least possible", at, bound.tolist()),
            ],
        ),
        Panel(
            f"keys moved, a replan every {EVERY:,} messages",
            "replans",
            "keys moved so far",
            [
                Line(label, range(1, len(c.moved) + 1), np.cumsum(c.moved).tolist())
                for label, c in courses.items()
                if c.moved
            ],
            log_y=True,
        ),
    ]
    return Reproduction(
        "distribution-aware-drift",
        "Distribution-aware Key Grouping on a stream that drifts",
        rows,
        checks,
        panels,
        _notes(courses, avoidable, bound, keys),
    )


def _messages(setting: Setting) -> U64:
    if setting.data:
        stream = from_file("HT", setting.data)
    else:
        messages = 500_000 if setting.quick else 2_000_000
        stream = stream_of(f"drift:z=0.7,keys=10000,messages={messages},period=100000")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(setting.seed)])
    return keys[:600_000] if setting.quick else keys


def _least_imbalance(keys: U64) -> float:
    hottest = np.unique(keys, return_counts=True)[1].max() / keys.size
    return max(0.0, float(hottest) - 1 / WORKERS)


def _course(scheme: Scheme, keys: U64, windows: list[slice], seed: int) -> Course:
    system = Sources(scheme, WORKERS, SOURCES, seed, Estimate())
    routed = [system.route(keys[:TO_LEARN])]
    seen = np.unique(keys[:TO_LEARN])
    moved, known = [], []
    for start in range(TO_LEARN, keys.size, EVERY):
        before: Any = system.plan
        span = keys[start : start + EVERY]
        routed.append(system.route(span))
        if system.plan is not before:
            seen = np.union1d(seen, span)
            changed = _homes(scheme, before, seen) != _homes(scheme, system.plan, seen)
            moved.append(int(np.count_nonzero(changed)))
            known.append(seen.size)
    workers = np.concatenate(routed)
    loads = [np.bincount(workers[w], minlength=WORKERS) for w in windows]
    return Course(np.array([measures.imbalance(x) for x in loads]), moved, known)


def _homes(scheme: Scheme, plan: Any, keys: U64) -> I32:
    """The worker of each key under a plan, without counting them as messages."""
    out = np.empty(keys.size, np.int32)
    still = plan._replace(learning=np.zeros(1, np.int64))
    scheme.send(still, scheme.tally(still, 0), keys, np.zeros(keys.size), out)
    return out


def _moved_share(course: Course) -> float:
    return float(np.mean(np.array(course.moved) / np.array(course.known)))


def _move_checks(courses: dict[str, Course]) -> list[Check]:
    free = _moved_share(courses["re-learn"])
    return [
        at_most(
            f"{label}: % of the known keys that a replan moves, on average",
            100 * _moved_share(courses[label]),
            100 * 2 * BUDGET,
        )
        for label in courses
        if "budget" in label
    ] + [
        at_least(
            "without a budget a replan moves more keys, times",
            free / _moved_share(courses["decay, budget 2 %"]),
            2,
        )
    ]


def _notes(
    courses: dict[str, Course], avoidable: dict[str, float], bound: F64, keys: U64
) -> list[str]:
    told = [
        f"{label}: imbalance {course.imbalances.mean():.4f} on average, "
        f"{avoidable[label]:.4f} of it avoidable"
        + (
            f"; a replan moves {np.mean(course.moved):,.0f} keys "
            f"({100 * _moved_share(course):.2f} % of those known)"
            if course.moved
            else ""
        )
        + "."
        for label, course in courses.items()
    ]
    return [
        f"{keys.size:,} messages; the hottest key of a window alone makes the imbalance "
        f"{bound.mean():.4f} on average.",
        *told,
        "The budget counts items (hot keys and buckets); a bucket's keys move together.",
    ]
