"""Dynamic Key Grouping on Spark: throughput and latency of figure 11 with sleeping folds.

80 % of the messages are one country, 0.1 ms each, ten workers. The key space is a source's own, so
each source must live through the warm-up: rate = 100 makes a minute of 6,000 messages.
"""

from __future__ import annotations

from typing import Any

from skewless.results import Line, Panel, Reproduction, Setting, at_least

SCHEMES = ("key", "partial", "dynamic:rate=100,hysteresis=0.5", "shuffle")
WORKERS, DELAY_MS = 10, 0.1


def figure11(setting: Setting) -> Reproduction:
    """Throughput at 20 %, 50 % and 80 % skew."""
    from skewless.spark import compare
    from skewless.spark.lab.session import local_session

    skews = (80,) if setting.quick else (20, 50, 80)
    messages = 300_000 if setting.quick else 1_500_000
    rows: list[dict[str, Any]] = []
    with local_session(WORKERS) as spark:
        for skew in skews:
            stream = f"countries:skew={skew},messages={messages}"
            found = compare(
                spark,
                stream,
                SCHEMES,
                WORKERS,
                delay_ms=DELAY_MS,
                sources=5,
                rounds=1 if setting.quick else 3,
                seed=setting.seed,
            )
            rows += [
                {
                    "skew": skew,
                    "scheme": str(result.scheme).partition(":")[0],
                    "throughput": result.throughput,
                    "latency_s": result.wall_s,
                    "ideal_s": result.ideal_s,
                    "replication": result.replication,
                }
                for result in found
            ]
            setting.step(f"skew {skew} %")
    value = {(r["skew"], r["scheme"]): float(r["throughput"]) for r in rows}
    names = [spec.partition(":")[0] for spec in SCHEMES]
    checks = [
        at_least(
            "80 %: dynamic's throughput ÷ partial's (paper: up to 1.93)",
            value[80, "dynamic"] / value[80, "partial"],
            1.5,
        ),
        at_least(
            "80 %: dynamic's throughput ÷ key's", value[80, "dynamic"] / value[80, "key"], 2.5
        ),
    ]
    panel = Panel(
        f"{WORKERS} workers, {DELAY_MS} ms a message",
        "skew (%)",
        "messages per second",
        [Line(n, skews, [value[s, n] for s in skews]) for n in names],
    )
    return Reproduction(
        "dynamic-fig11-spark",
        "Dynamic Key Grouping, figure 11 on Spark: throughput",
        rows,
        checks,
        [panel],
    )
