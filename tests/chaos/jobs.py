"""The rounds that run on the cluster: each gives its totals, to be compared with a plain job's."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skewless.apps import heavy_hitters, top_k
from skewless.schemes import scheme_of
from skewless.spark import balanced_map, group, join, learn
from tests.chaos import data
from tests.chaos.data import Totals
from tests.chaos.draw import drawn_setting
from tests.chaos.outcome import Outcome
from tests.chaos.streams import (
    LEARNERS,
    RANKED,
    Setting,
    Stream,
    all_folds,
    bayes,
    counted,
    slowly,
    totals_of_folds,
)
from tests.spark.own_folds import Longest

FILES, ROWS = 2, 600  # rows of a file
DELAY_MS = 6.0
GIVEN_UP = "Spark cannot rollback the ResultStage"
HOWS = ("inner", "left", "right", "full", "left_semi", "left_anti")


class Batch:
    """Rows on the cluster, out of a shuffle: in another order at each attempt."""

    def __init__(self, spark: SparkSession, folder: Path, setting: Setting) -> None:
        self.spark, self.folder, self.setting = spark, folder, setting
        self.plain = data.rows_in(folder / "in")

    def rows(self) -> DataFrame:
        return self.spark.read.schema(data.SCHEMA).parquet(str(self.folder / "in")).repartition(
            4, "id"
        )  # fmt: skip

    def slow_rows(self) -> DataFrame:
        return self.rows().mapInArrow(slowly(DELAY_MS), data.SCHEMA)

    def fold(self) -> tuple[Totals, Totals]:
        s = self.setting
        scheme: Any = s.scheme
        if scheme_of(scheme).learns == "prefix":
            scheme = learn(self.rows(), "w", scheme, s.workers, seed=s.seed)
        grouping = group(self.rows(), "w", scheme, s.workers, seed=s.seed)
        found = grouping.fold(*all_folds(DELAY_MS), Longest()).collect()
        return totals_of_folds(found), data.folded(self.plain)

    def joined(self) -> tuple[Totals, Totals]:
        how = random.Random(self.setting.seed).choice(HOWS)
        left = self.rows().select("id", "w")
        right = self.spark.read.schema(data.OTHERS).parquet(str(self.folder / "others"))
        result = join(left, right, "w", how, workers=self.setting.workers)
        slow = result.mapInArrow(slowly(DELAY_MS / 4), result.schema)
        found = Counter(map(tuple, slow.collect()))
        return found, Counter(map(tuple, left.join(right, "w", how).collect()))

    def mapped(self) -> tuple[Totals, Totals]:
        s, schema = self.setting, "id long, w string"
        small = self.rows().select("id", "w")
        made = balanced_map(
            small, slowly(DELAY_MS), schema, key="w", workers=s.workers, scheme=s.scheme
        )
        return Counter(map(tuple, made.collect())), Counter((r["id"], r["w"]) for r in self.plain)

    def hitters(self) -> tuple[Totals, Totals]:
        rows, scheme = self.slow_rows(), self.setting.scheme
        found = heavy_hitters(rows, "w", 0.001, scheme=scheme, workers=4).collect()
        expected = counted(self.plain)
        return Counter({r["w"]: r["count"] for r in found}), expected

    def top(self) -> tuple[Totals, Totals]:
        rows, scheme = self.slow_rows(), self.setting.scheme
        found = top_k(rows, "w", RANKED, scheme=scheme, workers=4).collect()
        return Counter({r["w"]: r["count"] for r in found}), counted(self.plain)

    def statistics(self) -> tuple[Totals, Totals]:
        s = self.setting
        learned = scheme_of(s.scheme).learns == "prefix"  # its plan would have to be learned first
        scheme = "partial" if learned else s.scheme
        table = bayes().statistics(self.slow_rows(), scheme, s.workers, seed=s.seed)
        names = ("feature", "value", "label", "n")
        rows = [[row[n] for n in names] for row in table.to_pylist()]
        return Counter({tuple(row[:3]): int(row[3]) for row in rows}), data.statistics(self.plain)


BATCHES: dict[str, Callable[[Batch], tuple[Totals, Totals]]] = {
    "own fold": Batch.fold,
    "join": Batch.joined,
    "balanced_map": Batch.mapped,
    "heavy hitters": Batch.hitters,
    "top_k": Batch.top,
    "naive Bayes": Batch.statistics,
}


def batch_round(
    spark: Any, drawn: random.Random, number: int, what: str, folder: Path, outcome: Outcome
) -> Any:
    """One batch job."""
    for file in range(FILES):
        data.put(folder, file, ROWS)
    setting = drawn_setting(drawn, what, number)
    outcome.schemes.add(setting.scheme)
    return until_spark_does_it(lambda: BATCHES[what](Batch(spark, folder, setting)), outcome)


def stream_round(
    spark: Any, drawn: random.Random, number: int, what: str, folder: Path, outcome: Outcome
) -> Any:
    """A stream that is started again for each file, where that is allowed with another setting."""
    setting = drawn_setting(drawn, what, number, delay_ms=DELAY_MS)
    for file in range(FILES):
        data.put(folder, file, ROWS)
        if file and what not in ("per_worker", *LEARNERS):
            setting = drawn_setting(drawn, what, number + file, delay_ms=DELAY_MS, before=setting)
        outcome.schemes.add(setting.scheme)
        stream = Stream(spark, folder, setting)
        until_spark_does_it(stream.run, outcome)
    return stream.totals()


def until_spark_does_it(act: Callable[[], Any], outcome: Outcome) -> Any:
    """Do it again where Spark gave up, as a user would.

    If what a shuffle lost comes out otherwise, Spark computes again what followed; it cannot where
    some of the results have left it already, and ends the job with an error.
    """
    while True:
        try:
            return act()
        except Exception as error:
            if GIVEN_UP not in str(error):
                raise
            outcome.faults["job that Spark gave up, run again"] += 1
