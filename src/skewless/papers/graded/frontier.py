"""The picture of this field: imbalance against replication, for every scheme, with the lower bound.

Schemes that need what an engine lacks (the whole stream beforehand, a memory of every key) are
drawn too: they show what knowledge is worth.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skewless import measures
from skewless.papers.streams import data_set
from skewless.results import Line, Panel, Reproduction, Setting, at_most
from skewless.schemes import SCHEMES
from skewless.simulate.balance import BalanceResult, Case, balance_all
from skewless.streams import Stream

LEAST = 1e-7  # drawn for everything below: one message in ten million


def frontier(setting: Setting) -> Reproduction:
    """Every scheme at 5 sources, W = 10, 50 and 100, on streams like the papers'."""
    counts = (50,) if setting.quick else (10, 50, 100)
    rows: list[dict[str, object]] = []
    checks, panels = [], []
    for symbol in ("TW", "WP", "CT"):
        stream = data_set(symbol, setting)
        shares = _counts(stream, setting.seed)
        for workers in counts:
            names = [n for n in SCHEMES if SCHEMES[n].least_workers <= workers and n != "sia"]
            cases = [Case(_spec(name, stream), workers, 5) for name in names]
            results = balance_all(stream, cases, seed=setting.seed)
            bound = measures.replication_bound(shares, workers, 0.01)
            for name, result in zip(names, results, strict=True):
                rows.append(
                    {
                        "data": symbol,
                        "workers": workers,
                        "scheme": name,
                        "imbalance": result.imbalance,
                        "replication": result.replication,
                        "least_replication": bound,
                    }
                )
            seen = dict(zip(names, results, strict=True))
            checks.append(
                at_most(
                    f"{symbol}, W = {workers}: graded's max/mean − 1",
                    seen["graded"].percent_imbalance / 100,
                    0.01,
                )
            )
            checks.append(
                at_most(
                    f"{symbol}, W = {workers}: graded's excess replication ÷ W-Choices'",
                    (seen["graded"].replication - 1) / (seen["w-choices"].replication - 1),
                    0.9 if symbol == "CT" and not setting.data else 0.5,
                )
            )
            panels.append(_panel(f"{symbol}, W = {workers}", seen, bound))
            setting.step(f"{symbol}, W = {workers}")
    return Reproduction(
        "frontier",
        "Imbalance against replication: left and low is better",
        rows,
        checks,
        panels,
        [
            "The synthetic CT rotates all of its 2,900 keys through the hot ranks: staying even at "
            "every time then costs copies of each, so graded saves less there than elsewhere."
        ],
    )


def _spec(name: str, stream: Stream) -> str:
    """A tenth of the stream to learn from, at most 100,000 messages."""
    if SCHEMES[name].learns != "prefix":
        return name
    return f"{name}:learn={min(100_000, (stream.length() or 1_000_000) // 10)}"


def _counts(stream: Stream, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    parts = [np.unique(chunk.keys, return_counts=True) for chunk in stream.chunks(seed)]
    keys, where = np.unique(np.concatenate([k for k, _ in parts]), return_inverse=True)
    return np.bincount(where, np.concatenate([c for _, c in parts]), keys.size).astype(np.int64)


def _panel(title: str, seen: Mapping[str, BalanceResult], bound: float) -> Panel:
    lines = [
        Line(name, [result.replication], [max(result.imbalance, LEAST)])
        for name, result in seen.items()
    ]
    lines.append(Line("lower bound", [bound, bound], [LEAST, 1.0]))
    return Panel(title, "replication", "imbalance", lines, kind="points", log_x=True, log_y=True)
