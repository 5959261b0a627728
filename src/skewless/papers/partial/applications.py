"""Partial Key Grouping, section 4: what splitting keys does for naive Bayes, trees, heavy hitters.

The paper states costs and measures none of them: a tree's histograms live on 2 workers instead of W
(2·D·C·L of them, not W·D·C·L), a heavy hitter's error has 2 terms instead of W, and all that key
grouping can do is done with even loads. Here messages are routed as on Spark, from 5 sources, and
what every worker would hold is counted. Time is the fullest worker's load over the mean: how much
longer than ideal a span of the stream takes when all messages cost the same.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.errors import SkewlessError
from skewless.papers.streams import data_set
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.simulate.sources import route

U64 = npt.NDArray[np.uint64]
SCHEMES = ("key", "partial", "graded", "shuffle")
WORKERS = (8, 50)
SOURCES = 5
FEATURES, CLASSES, LEAVES = 20, 3, 16
COUNTERS = 200  # of a worker's SpaceSaving
FILE = "kdd99_10pct.tsv.gz"
HITTERS = "heavy hitters"


class Seen(NamedTuple):
    """One application with one scheme."""

    time: float  # max load ÷ mean load
    most: int  # counters (or histograms) of the fullest worker
    in_all: int
    error: float | None = None  # largest possible error of a key ÷ messages


def applications(setting: Setting) -> Reproduction:
    """Time and memory per worker with key, partial, graded and shuffle, W = 8 and 50."""
    streams = {
        "naive Bayes": _bayes_keys(setting),
        "decision tree": _tree_keys(setting),
        HITTERS: _word_keys(setting),
    }
    rows: list[dict[str, Any]] = []
    checks: list[Check] = []
    panels = []
    for name, keys in streams.items():
        distinct = int(np.unique(keys).size)
        for workers in WORKERS:
            seen = {s: _judge(name, keys, s, workers, setting.seed) for s in SCHEMES}
            setting.step(f"{name}, W = {workers}")
            rows += [_row(name, keys, distinct, workers, s, seen) for s in SCHEMES]
            checks += _checks(name, workers, distinct, seen)
        panels += [
            _panel(name, rows, "time", "time ÷ ideal"),
            _panel(name, rows, "ours", "error ÷ key's" if name == HITTERS else "held ÷ key's"),
        ]
    return Reproduction(
        "partial-applications",
        "Partial Key Grouping, section 4: applications",
        rows,
        checks,
        panels,
        [
            "The paper gives no bound for graded choices, which are not in it.",
            "Messages come in random order: with the features of each row always in the same "
            "order, round robin keeps step with them, and each comes to a few workers only.",
            "claimed and ours are multiples of key grouping's: for naive Bayes and the tree, of "
            "all that workers hold, where the claim is the most that can be; for heavy hitters, of "
            "the largest possible error, where the claim is the number of terms.",
        ],
    )


def _judge(name: str, keys: U64, scheme: str, workers: int, seed: int) -> Seen:
    homes = route(keys, scheme, workers, sources=SOURCES, seed=seed).astype(np.uint64)
    loads = np.bincount(homes, minlength=workers)
    if name == HITTERS:
        error, most, in_all = _summaries(keys, homes, scheme, workers)
        return Seen(float(loads.max() / loads.mean()), most, in_all, error)
    pairs = np.unique(keys * np.uint64(workers) + homes)
    held = np.bincount(pairs % np.uint64(workers), minlength=workers)
    return Seen(float(loads.max() / loads.mean()), int(held.max()), int(held.sum()))


def _summaries(keys: U64, homes: U64, scheme: str, workers: int) -> tuple[float, int, int]:
    """The largest possible error of a key, and counters in use, most on a worker and in all."""
    import pyarrow as pa

    from skewless.apps.counting.summary import counted, merged, nothing, together
    from skewless.schemes import scheme_of

    found = []
    for worker in range(workers):
        mine, held = keys[homes == worker].view(np.int64), nothing(pa.int64(), COUNTERS)
        for start in range(0, mine.size, 10_000):
            part = pa.array(mine[start : start + 10_000])
            held = merged(held, counted(part, part, COUNTERS))
        found.append(held)
    answer = together(found, scheme_of(scheme).most_workers_per_key(workers))
    sizes = [held.counts.keys.size for held in found]
    return answer.missing / keys.size, max(sizes), sum(sizes)


def _row(
    name: str, keys: U64, distinct: int, workers: int, scheme: str, seen: Mapping[str, Seen]
) -> dict[str, Any]:
    one = seen[scheme]
    terms = {"key": 1, "partial": 2, "shuffle": workers}.get(scheme)
    ours = one.in_all / seen["key"].in_all
    if one.error is not None and seen["key"].error:
        ours = one.error / seen["key"].error
    return {
        "application": name,
        "workers": workers,
        "scheme": scheme,
        "messages": keys.size,
        "keys": distinct,
        "time": round(one.time, 3),
        "most": one.most,
        "in_all": one.in_all,
        "claimed": "–" if terms is None else terms,
        "ours": round(ours, 2),
        "error": "" if one.error is None else f"{one.error:.2e}",
    }


def _checks(name: str, workers: int, distinct: int, seen: Mapping[str, Seen]) -> list[Check]:
    where = f"{name}, W = {workers}"
    partial, shuffle, key = seen["partial"], seen["shuffle"], seen["key"]
    checks = [
        at_most(f"{where}: partial takes no longer than key", partial.time / key.time, 1.0),
        at_most(f"{where}: shuffle is even", shuffle.time, 1.01),
    ]
    if name == HITTERS:
        assert partial.error is not None
        assert shuffle.error is not None
        # Two terms of W: but the workers of hot keys have less room for the others.
        claim = f"{where}: error of partial ÷ of shuffle (paper: 2 ÷ W = {2 / workers:.2g})"
        return [*checks, at_most(claim, partial.error / shuffle.error, 4 / workers)]
    checks.append(
        at_most(f"{where}: partial holds at most 2 of each", partial.in_all, 2 * distinct)
    )
    if name == "decision tree":
        # Every histogram comes often enough to be on every worker.
        claim = f"{where}: shuffle holds nearly W of each"
        checks.append(at_least(claim, shuffle.in_all, 0.9 * workers * distinct))
    else:
        claim = f"{where}: shuffle holds more than partial, times"
        checks.append(at_least(claim, shuffle.in_all / partial.in_all, 1.1))
    return checks


def _panel(name: str, rows: list[dict[str, Any]], what: str, label: str) -> Panel:
    lines = [
        Line(
            f"W = {w}",
            SCHEMES,
            [float(r[what]) for r in rows if (r["application"], r["workers"]) == (name, w)],
        )
        for w in WORKERS
    ]
    return Panel(f"{name}: {label}", "scheme", label, lines, kind="bars", log_y=what == "ours")


def _rows_of(setting: Setting) -> int:
    return 50_000 if setting.quick else 200_000


def _bayes_keys(setting: Setting) -> U64:
    """(feature, value, class) of every row: of kdd99, or values that are Zipf in each feature."""
    if setting.data is not None:
        return _kdd_keys(setting.data)
    random, rows = np.random.default_rng(setting.seed), _rows_of(setting)
    values = random.zipf(1.3, (rows, FEATURES)) % 5000
    classes = random.choice(CLASSES, rows, p=[0.7, 0.2, 0.1])
    return _dense(np.arange(FEATURES)[None, :], values, classes[:, None])


def _tree_keys(setting: Setting) -> U64:
    """(leaf, feature, class) of every row: some leaves and classes have far more rows."""
    random, rows = np.random.default_rng(setting.seed + 1), _rows_of(setting)
    shares = 1 / np.arange(1, LEAVES + 1)
    leaves = random.choice(LEAVES, rows, p=shares / shares.sum())
    classes = random.choice(CLASSES, rows, p=[0.7, 0.2, 0.1])
    features = np.broadcast_to(np.arange(FEATURES), (rows, FEATURES))
    return _dense(leaves[:, None], features, classes[:, None])


def _word_keys(setting: Setting) -> U64:
    chunks, most = [], 500_000 if setting.quick else 2_000_000
    for chunk in data_set("WP", setting).chunks(setting.seed):
        chunks.append(chunk.keys)
        if sum(part.size for part in chunks) >= most:
            break
    return np.concatenate(chunks)[:most]


def _kdd_keys(folder: Path) -> U64:
    path = folder / FILE
    if not path.is_file():
        raise SkewlessError(
            f"The data folder '{folder}' has no {FILE}: give the folder that holds it, "
            "or leave --data out to use synthetic streams."
        )
    with gzip.open(path, "rt") as file:
        columns = list(zip(*(line.rstrip("\n").split("\t") for line in file), strict=True))
    service, label, protocol, flag, size = (np.unique(c, return_inverse=True)[1] for c in columns)
    values = np.column_stack([service, protocol, flag, size])
    return _dense(np.arange(4)[None, :], values, label[:, None])


def _dense(*parts: npt.NDArray[Any]) -> U64:
    """Numbers 0, 1, … for the distinct tuples, in random order.

    Row after row, each with its features in one order, round robin would keep step with them: of 20
    features, each would come to 2 of 8 workers only, and shuffle would look better than it is.
    """
    together = np.zeros((), np.int64)
    for part in np.broadcast_arrays(*parts):
        together = together * (int(part.max()) + 1) + part
    keys = np.unique(together.ravel(), return_inverse=True)[1].astype(np.uint64)
    return np.random.default_rng(0).permutation(keys)
