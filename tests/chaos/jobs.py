"""The rounds that run on the cluster: each gives its totals, to be compared with a plain job's."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skewless import folds
from skewless.schemes import SCHEMES
from skewless.spark import balanced_map, group, join, per_worker
from tests.spark.own_folds import Longest
from tests.spark.processors import SlowCountPerKey

Totals = Counter[Any]
ROWS, BATCHES = 3000, 3
DELAY_MS = 1.0
KEY = "case when id % 3 = 0 then 'hot' when id % 5 = 0 then null else concat('w', id % 101) end"
ON_SPARK = sorted(
    name for name, kind in SCHEMES.items() if kind.learns != "stream" and not kind.coordinated
)


def key_of(i: int) -> str | None:
    return "hot" if i % 3 == 0 else None if i % 5 == 0 else f"w{i % 101}"


def counts() -> Totals:
    """What a plain job would count."""
    return Counter(key_of(i) for i in range(ROWS))


def rows(spark: SparkSession) -> DataFrame:
    # Out of a shuffle, rows come in another order at each attempt.
    made = spark.range(0, ROWS, 1, 6).selectExpr("id", f"{KEY} as w", "cast(id as string) as s")
    return made.repartition(4, "id")


def slow_count() -> Any:
    return folds.sleeping(folds.count(), DELAY_MS)


def batch(spark: SparkSession, drawn: random.Random, folder: Path) -> tuple[Totals, Totals]:
    chosen = [slow_count(), folds.sum("id"), *([Longest()] if drawn.random() < 0.5 else [])]
    grouping = group(
        rows(spark), "w", _scheme(drawn), drawn.randint(2, 6), seed=drawn.randint(0, 9)
    )
    found = grouping.fold(*chosen).collect()
    sums: Totals = Counter()
    for i in range(ROWS):
        sums[key_of(i)] += i
    assert {row["w"]: row["sum(id)"] for row in found} == sums, "the sums differ"
    return Counter({row["w"]: row["count"] for row in found}), counts()


def stream(spark: SparkSession, drawn: random.Random, folder: Path) -> tuple[Totals, Totals]:
    """Every batch after a restart with another setting."""
    found: Totals = Counter()
    own = [Longest()] if drawn.random() < 0.5 else []
    for number in range(BATCHES):
        _put(spark, folder, number)
        checkpoint = str(folder / "checkpoint")
        grouping = group(
            _read(spark, folder), "w", _scheme(drawn), drawn.randint(2, 6),
            seed=drawn.randint(0, 9), checkpoint=checkpoint,
        )  # fmt: skip
        _run(
            grouping.fold(slow_count(), *own),
            folder,
            lambda row: found.update(_count_of(row, found)),
        )
    return found, counts()


def state(spark: SparkSession, drawn: random.Random, folder: Path) -> tuple[Totals, Totals]:
    """`per_worker`, two runs of one query; the newest counts of each worker, merged by key."""
    scheme, newest = _scheme(drawn), {}
    for number in range(BATCHES):
        _put(spark, folder, number)
        words = _read(spark, folder).where("w is not null").select("w")
        processor, where = SlowCountPerKey(DELAY_MS), str(folder / "checkpoint")
        counted = per_worker(
            words, "w", scheme, 4, processor, SlowCountPerKey.SCHEMA, checkpoint=where
        )
        _run(counted, folder, lambda row: newest.update({(row["worker"], row["w"]): row["count"]}))
    found: Totals = Counter()
    for (_, word), count in newest.items():
        found[word] += count
    expected = counts()
    del expected[None]
    return found, expected


def joined(spark: SparkSession, drawn: random.Random, folder: Path) -> tuple[Totals, Totals]:
    how = drawn.choice(["inner", "left", "full"])
    left = rows(spark).select("id", "w")
    right = spark.range(0, 120, 1, 2).selectExpr("id as y", "concat('w', id) as w")
    right = right.union(spark.sql("select -id as y, 'hot' as w from range(1, 4)"))
    result = join(left, right, "w", how, workers=drawn.randint(3, 6))
    found = Counter(map(tuple, result.mapInArrow(_slowly, result.schema).collect()))
    return found, Counter(map(tuple, left.join(right, "w", how).collect()))


def mapped(spark: SparkSession, drawn: random.Random, folder: Path) -> tuple[Totals, Totals]:
    scheme = drawn.choice(["proactive", "shuffle"])
    small = rows(spark).select("id", "w")
    result = balanced_map(
        small, _slowly, "id long, w string", key="w", workers=drawn.randint(2, 6), scheme=scheme
    )
    return Counter(map(tuple, result.collect())), Counter((i, key_of(i)) for i in range(ROWS))


ROUNDS: dict[str, Callable[[SparkSession, random.Random, Path], tuple[Totals, Totals]]] = {
    "batch fold": batch,
    "stream fold": stream,
    "join": joined,
    "balanced_map": mapped,
    "per_worker": state,
}


def _scheme(drawn: random.Random) -> str:
    return drawn.choice(ON_SPARK)


def _slowly(batches: Any) -> Any:
    for one in batches:
        time.sleep(one.num_rows * DELAY_MS / 1000)
        yield one


def _put(spark: SparkSession, folder: Path, number: int) -> None:
    start = number * ROWS // BATCHES
    part = spark.range(start, start + ROWS // BATCHES, 1, 1)
    part = part.selectExpr("id", f"{KEY} as w", "cast(id as string) as s")
    part.write.mode("append").parquet(str(folder / "in"))


def _read(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema("id long, w string, s string")
    return reader.parquet(str(folder / "in")).repartition(4, "id")


def _count_of(row: Any, found: Totals) -> Totals:
    """What to add so that the newest count stands."""
    return Counter({row["w"]: row["count"] - found[row["w"]]})


def _run(frame: DataFrame, folder: Path, keep: Callable[[Any], None]) -> None:
    def take(changed: DataFrame, number: int) -> None:
        for row in changed.collect():
            keep(row)

    writer = frame.writeStream.outputMode("update").foreachBatch(take)
    query = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
