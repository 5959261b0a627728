"""Heavy hitters: keys with more than a share of all messages, by SpaceSaving on every worker.

Partial Key Grouping, section 4.2. Rows are routed by key; each worker keeps one summary of a fixed
number of counters; an aggregator joins them. A key's error is the sum of the terms of the workers
that it may have been on: of 1 with `key`, of 2 with `partial`, of all with `shuffle`.
"""

from __future__ import annotations

import math
from typing import Any

from pyspark.sql import Column, DataFrame

from skewless.apps.counting.fold import WorkerSummaries
from skewless.apps.counting.run import MOST_COUNTERS, counting
from skewless.arguments import number
from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.spark.input.checks import Key

RESULTS = ("count", "error", "total", "sure")


def heavy_hitters(
    df: DataFrame,
    key: Key,
    share: float = 0.01,
    *,
    epsilon: float | None = None,
    by: Key | None = None,
    scheme: Scheme | str = "partial",
    workers: int | None = None,
    seed: int = 0,
    output_mode: str = "update",
) -> DataFrame:
    """The keys that may have at least that share of all messages, most frequent first.

    One row per key: its value, `count`, `error`, `total`, `sure`. The true count lies in
    count − error … count; every key that reaches the share is there; `sure` says whether
    count − error reaches it too. Null is a key like any other, as in groupBy.

    key: a column's name or a Column, of a type without inner structure
    share: in (0, 1]
    epsilon: the error is at most this share of the total, below `share`; a tenth of it if not
        given. A worker keeps 1/epsilon counters
    by: an answer for each value of it, such as `F.window("time", "10 minutes")`; by default, one
        for all rows
    scheme: one without a plan to learn; `key`, `partial` and `shuffle` are the paper's three
    workers: by default, as many as Spark's own shuffles have partitions
    output_mode: on a stream, the mode in which it will be written: "update" gives the whole answer
        of each `by` that a micro-batch changed, "append" that of a window once it has ended
    """
    share = _check_share("share", share)
    epsilon = _check_share("epsilon", share / 10 if epsilon is None else epsilon)
    if epsilon >= share:
        raise SkewlessError(
            f"epsilon={epsilon:g} must be below share={share:g}: a key that misses its counter "
            "might else be a heavy hitter."
        )
    if epsilon * MOST_COUNTERS < 1:
        raise SkewlessError(
            f"epsilon={epsilon:g} asks for more than {MOST_COUNTERS:,} counters on each worker: "
            f"give one of {1 / MOST_COUNTERS:g} or more; it is a tenth of the share if not given."
        )
    count = counting(df, key, by, scheme, workers, seed, results=RESULTS)
    counters = math.ceil(1 / epsilon)
    about = count.about(counters)
    fold = WorkerSummaries(
        count.kind, counters, count.workers_per_key, least_share=share, about=about
    )

    def columns(row: Column) -> list[Column]:
        found = row["count"] - row["error"]
        return [
            count.shown(row),
            *(row[name].alias(name) for name in ("count", "error", "total")),
            (found / row["total"] >= share).alias("sure"),
        ]

    return count.exploded(count.fold(fold, output_mode), columns, ranked=False)


def _check_share(what: str, value: Any) -> float:
    if not 0 < number(what, value) <= 1:
        raise SkewlessError(f"{what} is a share in (0, 1], not {value!r}.")
    return float(value)
