"""The streams of the campaign: how each starts, what its sink holds, and what it should hold.

A sink writes a file per micro-batch, whole or not at all, so that one which runs again counts once.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skewless import folds
from skewless.apps import DecisionTree, NaiveBayes, heavy_hitters, top_k, trending
from skewless.spark import balanced_map, group, join, learn_join, per_worker
from tests.chaos import data
from tests.chaos.data import Totals
from tests.spark.own_folds import Longest
from tests.spark.processors import SlowCountPerKey

PERIOD, RANKED = timedelta(minutes=5), 500


@dataclass(frozen=True)
class Setting:
    """How a stream is started; a restart may change scheme, workers and seed where it is allowed.

    pause: where the driver stops to be killed: "sink", "plan", "learned" or nowhere
    least: the micro-batch from which on it stops there
    """

    what: str
    scheme: str = "partial"
    workers: int = 4
    seed: int = 0
    delay_ms: float = 2.0
    connect: bool = False
    pause: str = ""
    least: int = 0
    slow_writes_s: float = 0.0

    def save(self, folder: Path) -> None:
        (folder / "setting.json").write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(folder: Path) -> Setting:
        return Setting(**json.loads((folder / "setting.json").read_text()))


def all_folds(delay_ms: float) -> list[Any]:
    slow = folds.sleeping(folds.count(), delay_ms)
    numbers = [folds.sum("id"), folds.mean("id"), folds.min("id"), folds.max("id")]
    return [slow, *numbers, folds.approx_count_distinct("label"), folds.top_k("label", 1)]


def totals_of_folds(rows: list[Any]) -> Totals:
    """What `data.folded` gives, from the rows of all folds; the longest text if it was folded."""
    totals: Totals = Counter()
    for w, count, total, mean, least, most, distinct, top, *longest in rows:
        totals[w, "count"], totals[w, "sum"] = count, total
        totals[w, "mean", round(mean, 6)] = totals[w, "min", least] = totals[w, "max", most] = 1
        totals[w, "distinct", distinct] = 1
        totals[w, "top", top[0][0], top[0][1]] = 1
        if longest:
            totals[w, "longest", longest[0]] = 1
    return totals


def slowly(delay_ms: float) -> Callable[[Any], Any]:
    def function(batches: Any) -> Any:
        for batch in batches:
            time.sleep(batch.num_rows * delay_ms / 1000)
            yield batch

    return function


class Stream:
    """One stream in its folder: `in`, `others`, `checkpoint`, and `out` or `learned`."""

    def __init__(self, spark: SparkSession, folder: Path, setting: Setting) -> None:
        self.spark, self.folder, self.setting = spark, folder, setting
        self.checkpoint = str(folder / "checkpoint")

    def read(self, name: str = "in", schema: str = data.SCHEMA) -> DataFrame:
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / name))

    def rows(self) -> DataFrame:
        # Out of a shuffle, rows come in another order at each attempt.
        return self.read().repartition(3, "id")

    def slow_rows(self) -> DataFrame:
        return self.rows().mapInArrow(slowly(self.setting.delay_ms), data.SCHEMA)

    def grouped(self, *more: Any) -> DataFrame:
        s = self.setting
        grouping = group(
            self.rows(), "w", s.scheme, s.workers, seed=s.seed, checkpoint=self.checkpoint
        )
        return grouping.fold(*all_folds(s.delay_ms), *more)

    def frame(self) -> DataFrame:
        """What is written to the sink."""
        s = self.setting
        if s.what == "fold":
            return self.grouped()
        if s.what == "own fold":
            return self.grouped(Longest())
        if s.what == "per_worker":
            words = self.rows().where("w is not null").select("w")
            return per_worker(
                words, "w", s.scheme, s.workers, SlowCountPerKey(s.delay_ms),
                SlowCountPerKey.SCHEMA, seed=s.seed, checkpoint=self.checkpoint,
            )  # fmt: skip
        if s.what == "balanced_map":
            return balanced_map(
                self.rows().select("id", "w"), slowly(s.delay_ms), "id long, w string", key="w",
                workers=s.workers, scheme=s.scheme, seed=s.seed, checkpoint=self.checkpoint,
            )  # fmt: skip
        if s.what == "join":
            return self.joined()
        rows = self.slow_rows()
        if s.what == "heavy hitters":
            return heavy_hitters(rows, "w", 0.001, scheme=s.scheme, workers=4)
        if s.what == "top_k":
            return top_k(rows, "w", RANKED, scheme=s.scheme, workers=4)
        return trending(rows, "w", "t", PERIOD, RANKED, scheme=s.scheme, workers=4)

    def joined(self) -> DataFrame:
        left, right = self.slow_rows().select("id", "w"), self.read("others", data.OTHERS)
        plan = None
        if not list(Path(self.checkpoint).glob("skewless/join-*.json")):
            still = self.spark.read.schema(data.SCHEMA).parquet(str(self.folder / "in"))
            others = self.spark.read.schema(data.OTHERS).parquet(str(self.folder / "others"))
            plan = learn_join(still.select("id", "w"), others, "w", result_weight=0)
        return join(left, right, "w", plan=plan, checkpoint=self.checkpoint)

    def learner(self) -> Any:
        where, s = str(self.folder / "learned"), self.setting
        if s.what == "naive Bayes":
            return bayes().learner(where, s.scheme, s.workers)
        return tree().learner(where, s.scheme, s.workers, grace=100)

    def run(self) -> None:
        """To the end of what is there."""
        folder, setting = self.folder, self.setting
        if setting.what in LEARNERS:
            rows, take = self.slow_rows(), learning_sink(self.learner(), folder, setting)
        else:
            rows, take = self.frame(), file_sink(folder, setting)
        appends = setting.what in ("balanced_map", "join")
        writer = rows.writeStream.outputMode("append" if appends else "update").foreachBatch(take)
        writer = writer.option("checkpointLocation", self.checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()

    def totals(self) -> tuple[Totals, Totals]:
        """What was found, and what a plain job finds."""
        rows = data.rows_in(self.folder / "in")
        return FOUND[self.setting.what](self), EXPECTED[self.setting.what](self, rows)


def bayes() -> NaiveBayes:
    return NaiveBayes("label", ["w", "s"])


def tree() -> DecisionTree:
    return DecisionTree("label", ["a"], depth=3)


def file_sink(folder: Path, setting: Setting) -> Callable[[DataFrame, int], None]:
    def take(rows: DataFrame, batch: int) -> None:
        out = folder / "out"
        out.mkdir(exist_ok=True)
        part = out / f".{batch}"
        part.write_text(json.dumps([list(row) for row in rows.collect()], default=str))
        part.rename(out / f"{batch:05}.json")
        pause(folder, setting, "sink", batch)

    return take


def learning_sink(learner: Any, folder: Path, setting: Setting) -> Callable[[DataFrame, int], None]:
    def take(rows: DataFrame, batch: int) -> None:
        learner(rows, batch)
        pause(folder, setting, "sink", batch)

    return take


def pause(folder: Path, setting: Setting, where: str, batch: int) -> None:
    """Say that the moment has come, and wait to be killed."""
    if setting.pause == where and batch >= setting.least:
        (folder / "here").touch()
        time.sleep(600)


def batches(stream: Stream) -> list[list[Any]]:
    """The rows that the sink holds, batch by batch."""
    files = sorted((stream.folder / "out").glob("*.json"))
    return [json.loads(file.read_text()) for file in files]


def newest(stream: Stream, keys: int) -> list[list[Any]]:
    """The last row of each key, which is the first columns."""
    found = {tuple(row[:keys]): row for batch in batches(stream) for row in batch}
    return list(found.values())


def all_rows(stream: Stream) -> Totals:
    return Counter(tuple(row) for batch in batches(stream) for row in batch)


def found_per_worker(stream: Stream) -> Totals:
    totals: Totals = Counter()
    last = {(row[0], row[2]): row[3] for batch in batches(stream) for row in batch}
    for (_, word), count in last.items():
        totals[word] += count
    return totals


def last_answer(stream: Stream, *columns: int) -> Totals:
    """The rows of the last micro-batch that gave any."""
    answers = [batch for batch in batches(stream) if batch]
    return Counter(tuple(row[c] for c in columns) for row in (answers or [[]])[-1])


def found_statistics(stream: Stream) -> Totals:
    learned = stream.learner().folder.newest()
    names = ("feature", "value", "label", "n")
    rows = [] if learned is None else learned.table.select(names).to_pylist()
    return Counter({tuple(row[n] for n in names[:3]): int(row["n"]) for row in rows})


def found_tree(stream: Stream) -> Totals:
    learner = stream.learner()
    model = learner.model()
    return Counter([model.text() if model else "", *map(str, learner.history())])


def expected_tree(stream: Stream, rows: Any) -> Totals:
    """The same learner on the same files, one after the other."""
    learner = tree().learner(str(stream.folder / "plain"), "key", 2, grace=100)
    for batch, path in enumerate(sorted((stream.folder / "in").glob("*.parquet"))):
        learner(stream.spark.read.schema(data.SCHEMA).parquet(str(path)), batch)
    return Counter([learner.model().text(), *map(str, learner.history())])


def expected_trend(stream: Stream, rows: Any) -> Totals:
    still = stream.spark.read.schema(data.SCHEMA).parquet(str(stream.folder / "in"))
    found = trending(still, "w", "t", PERIOD, RANKED, scheme="key", workers=2).collect()
    return Counter((row["w"], row["now"], round(row["past"], 6)) for row in found)


def found_trend(stream: Stream) -> Totals:
    answer = last_answer(stream, 2, 3, 4)
    return Counter({(w, now, round(past, 6)): n for (w, now, past), n in answer.items()})


def counted(rows: Any) -> Totals:
    return Counter(row["w"] for row in rows)


def plain_folds(stream: Stream, rows: Any) -> Totals:
    own = stream.setting.what == "own fold"
    return Counter({k: n for k, n in data.folded(rows).items() if own or k[1] != "longest"})


FOUND: dict[str, Callable[[Stream], Totals]] = {
    "fold": lambda stream: totals_of_folds(newest(stream, 1)),
    "own fold": lambda stream: totals_of_folds(newest(stream, 1)),
    "per_worker": found_per_worker,
    "balanced_map": lambda stream: all_rows(stream),
    "join": lambda stream: all_rows(stream),
    "heavy hitters": lambda stream: last_answer(stream, 0, 1, 2),
    "top_k": lambda stream: last_answer(stream, 1, 2, 3),
    "trending": found_trend,
    "naive Bayes": found_statistics,
    "decision tree": found_tree,
}
EXPECTED: dict[str, Callable[[Stream, Any], Totals]] = {
    "fold": plain_folds,
    "own fold": plain_folds,
    "per_worker": lambda stream, rows: counted(r for r in rows if r["w"] is not None),
    "balanced_map": lambda stream, rows: Counter((r["id"], r["w"]) for r in rows),
    "join": lambda stream, rows: data.pairs(rows, data.rows_in(stream.folder / "others")),
    "heavy hitters": lambda stream, rows: Counter(
        (w, n, 0) for w, n in counted(rows).items() if n >= 0.001 * len(rows)
    ),
    "top_k": lambda stream, rows: Counter((w, n, 0) for w, n in counted(rows).items()),
    "trending": expected_trend,
    "naive Bayes": lambda stream, rows: data.statistics(rows),
    "decision tree": expected_tree,
}
LEARNERS = ("naive Bayes", "decision tree")
COUNTERS = ("heavy hitters", "top_k", "trending")
