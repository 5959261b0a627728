"""Partial Key Grouping on an engine: figure 10 and table 3 of the paper, on Spark.

Workers are Spark tasks that sleep the paper's delay per message, so eight threads on few cores act
as eight machines. Aggregation periods are micro-batches. Where the hash puts the hottest key and
its neighbours decides how far key grouping falls behind (its fullest worker has 1.4 to 1.9 times
the mean), so all figures are means over several seeds. A batch holds four seconds of even work,
because Spark itself takes about one second per batch whatever the scheme. Tolerances: the paper's
absolute figures belong to a Storm cluster that saturates at 0.4 ms; what must be seen here is the
order of the schemes and how far apart they are where the delay dominates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from skewless.results import (
    Check,
    Line,
    Panel,
    Reproduction,
    Setting,
    at_least,
    at_most,
    between,
)
from skewless.schemes import scheme_of
from skewless.streams import stream_of

SCHEMES = ("key", "partial", "shuffle")
WORKERS = 8


@dataclass(frozen=True)
class Case:
    """Runs of all schemes: the delay of a message, the micro-batches, even work in each."""

    delay_ms: float
    batches: int
    work_s: float

    @property
    def messages(self) -> int:
        """Of all batches together."""
        return int(self.batches * self.work_s * WORKERS / self.delay_ms * 1000)


def figure10(setting: Setting) -> Reproduction:
    """Throughput against the delay, and throughput and memory against the aggregation period."""
    rows = _by_delay(setting)
    periods = (2, 8) if setting.quick else (2, 4, 8, 16)
    in_all_s = 2 if setting.quick else 8
    cases = [Case(0.4, batches, in_all_s / batches) for batches in periods]
    by_period = _runs(cases, _seeds(setting)[:1], setting)
    memory = {(r["scheme"], r["batches"]): r["partials_per_batch"] for r in by_period}
    checks = [
        _ratio(rows, "throughput", "key", at_least, 1.4, ""),
        _ratio(rows, "throughput", "shuffle", at_least, 0.85, ""),
        *(
            between(
                f"{b} periods: partial's partial counts lie between key's and shuffle's (share)",
                (memory["partial", b] - memory["key", b])
                / (memory["shuffle", b] - memory["key", b]),
                0.0,
                0.7,
            )
            for b in periods
        ),
    ]
    panels = [
        _panel(rows, "throughput", "messages per second"),
        Panel(
            "0.4 ms, by aggregation period",
            "partial counts per period",
            "messages per second",
            [Line(s, *zip(*_points(by_period, s), strict=True)) for s in SCHEMES],
        ),
    ]
    return Reproduction(
        "partial-fig10",
        f"Partial Key Grouping, figure 10: throughput on Spark, {WORKERS} workers",
        [*rows, *by_period],
        checks,
        panels,
    )


def table3(setting: Setting) -> Reproduction:
    """Latency of a micro-batch's messages, from trigger to commit, against the delay."""
    rows = _by_delay(setting)
    checks = [
        _ratio(rows, "latency_s", "key", at_most, 0.7, " (paper: up to 43 % less)"),
        _ratio(rows, "latency_s", "shuffle", at_most, 1.2, ""),
    ]
    return Reproduction(
        "partial-table3",
        f"Partial Key Grouping, table 3: latency on Spark, {WORKERS} workers",
        rows,
        checks,
        [_panel(rows, "latency_s", "seconds")],
    )


def _seeds(setting: Setting) -> Sequence[int]:
    return range(setting.seed, setting.seed + (2 if setting.quick else 3))


def _by_delay(setting: Setting) -> list[dict[str, Any]]:
    delays, batches = ((1.0,), 2) if setting.quick else ((0.1, 0.4, 1.0), 3)
    return _runs([Case(delay, batches, 4) for delay in delays], _seeds(setting), setting)


def _runs(cases: list[Case], seeds: Sequence[int], setting: Setting) -> list[dict[str, Any]]:
    """Each scheme in each case, the mean over the seeds."""
    from skewless.spark.lab.session import local_session

    rows = []
    with local_session(WORKERS) as spark:
        for case in cases:
            for name in SCHEMES:
                runs = [_run(spark, case, name, seed) for seed in seeds]
                setting.step(f"{name}, {case.delay_ms} ms, {case.batches} batches")
                means = {what: mean(run[what] for run in runs) for what in runs[0]}
                rows.append(
                    {
                        "scheme": name,
                        "delay_ms": case.delay_ms,
                        "batches": case.batches,
                        "seeds": len(seeds),
                        **means,
                    }
                )
    return rows


def _run(spark: Any, case: Case, name: str, seed: int) -> dict[str, float]:
    """One run; its first batch warms up."""
    from skewless.spark.lab.pipeline import Pipeline, run
    from skewless.spark.observe.observer import Observer

    stream = stream_of(f"zipf:z=1.0,keys=26000,messages={case.messages}")
    observer = Observer()
    scheme = scheme_of(name)
    run(spark, Pipeline(stream, scheme, WORKERS, case.batches, case.delay_ms, seed=seed), observer)
    warm = observer.records()[1:]
    return {
        "throughput": sum(r.messages for r in warm) / sum(r.seconds for r in warm),
        "latency_s": mean(r.seconds for r in warm),
        "partials_per_batch": mean(r.partials for r in warm),
        "largest_load": mean(max(r.loads) / mean(r.loads) for r in warm),
    }


def _ratio(
    rows: list[dict[str, Any]], what: str, other: str, bound: Any, limit: float, note: str
) -> Check:
    """Partial's figure against another scheme's where the delay is largest."""
    last = rows[-1]["delay_ms"]
    value = {r["scheme"]: r[what] for r in rows if r["delay_ms"] == last}
    claim = f"{last} ms: partial's {what.removesuffix('_s')} ÷ {other}'s{note}"
    check: Check = bound(claim, value["partial"] / value[other], limit)
    return check


def _panel(rows: list[dict[str, Any]], what: str, unit: str) -> Panel:
    lines = []
    for scheme in SCHEMES:
        own = [r for r in rows if r["scheme"] == scheme]
        lines.append(Line(scheme, [r["delay_ms"] for r in own], [r[what] for r in own]))
    name = what.removesuffix("_s")
    return Panel(f"{name} of micro-batches", "delay (ms)", unit, lines, log_x=True, log_y=True)


def _points(rows: list[dict[str, Any]], scheme: str) -> list[tuple[float, float]]:
    return [
        (row["partials_per_batch"], row["throughput"]) for row in rows if row["scheme"] == scheme
    ]
