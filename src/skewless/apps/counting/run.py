"""Rows to summaries on Spark: routed by item, summarised on each worker, joined by `by`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, StructField

from skewless._version import __version__
from skewless.apps.counting.fold import IDENTITY, ITEM
from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.folds import Fold
from skewless.folds.api import is_plain
from skewless.hashing import check_seed
from skewless.schemes import Scheme
from skewless.spark.fold.bind import bind
from skewless.spark.fold.group import MOST_BYTES, MOST_KEYS
from skewless.spark.fold.merge import merge_by_key
from skewless.spark.fold.on_workers import fold_on_workers
from skewless.spark.fold.stream import check_output_mode, merge_stream
from skewless.spark.fold.values import text_of
from skewless.spark.input.checks import (
    Key,
    check_scheme,
    check_server,
    column_named,
    key_columns,
    make_plan,
    name_rule,
    worker_count,
)
from skewless.spark.input.keys import group_keys
from skewless.spark.input.types import arrow_type
from skewless.spark.input.wire import identity
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.routing.route import place

MOST_COUNTERS = 1_000_000_000  # of one worker; more would not fit into its memory
_ALL = "skewless_all"


@dataclass(frozen=True)
class Counting:
    """Items about to be counted on workers; made by `counting`."""

    df: DataFrame
    item: StructField
    kind: pa.DataType
    by: Key | None
    scheme: Scheme
    workers: int
    seed: int
    texts: tuple[str, ...]  # of the item and of what else the fold reads

    @property
    def workers_per_key(self) -> int:
        """On how many workers an item may be."""
        return self.scheme.most_workers_per_key(self.workers)

    def fold(self, fold: Fold, output_mode: str) -> DataFrame:
        """One row per value of `by`: its columns, and the fold's result, a list."""
        check_output_mode(output_mode)
        by = F.lit(0).alias(_ALL) if self.by is None else self.by
        keys = group_keys(self.df, by)
        bound = bind(self.df, keys, [fold], MOST_KEYS, MOST_BYTES)
        rows = keys.select(self.df, [value.column for value in bound.values])
        names = [value.name for value in bound.values]
        routed = F.col(f"v{names.index(IDENTITY)}")
        plan = make_plan(self.scheme, self.workers, self.seed, None)
        placed = place(rows, routed, self.scheme, plan, self.workers)
        partials = fold_on_workers(placed, bound, None)
        if self.df.isStreaming:
            return merge_stream(partials, bound, output_mode)
        return merge_by_key(partials, bound)

    def shown(self, row: Column) -> Column:
        """The item of a row of the fold's list, under the name and of the type that it had."""
        return row["item"].cast(self.item.dataType).alias(self.item.name)

    def about(self, counters: int | None) -> str:
        """What the summaries are of: other ones must not be mixed with them.

        Where counters are few, an item's error is known only if it stays on its workers.
        """
        words = ", ".join(self.texts)
        if counters is None:
            return words
        return f"{words} by {self.scheme.spec}, {self.workers} workers, seed {self.seed}"

    def exploded(
        self,
        found: DataFrame,
        columns: Callable[[Column], list[Column]],
        ranked: bool = True,
    ) -> DataFrame:
        """A row per element of the fold's list, best first; with its rank, from 1 on, or not."""
        kept = [column_named(name) for name in found.columns if name not in (_ALL, "found")]
        rows = found.select(*kept, F.posexplode("found").alias("skewless_rank", "skewless_row"))
        rank = [(F.col("skewless_rank") + 1).alias("rank")] if ranked else []
        return rows.select(*kept, *rank, *columns(F.col("skewless_row")))


def counting(
    df: DataFrame,
    key: Key,
    by: Key | None,
    scheme: Scheme | str,
    workers: int | None,
    seed: int,
    *more: Column,
    results: tuple[str, ...] = ("rank", "count", "error"),
) -> Counting:
    """Check what was handed in; no job starts.

    more: further columns that the fold reads
    results: the names that the result has beside the key's and those of `by`
    """
    check_server(df)
    check_workers_python(df.sparkSession, __version__)
    made = check_scheme(scheme)
    columns, fields = key_columns(df, key)
    if len(fields) != 1:
        raise SkewlessError(
            f"What is counted is one column, not {len(fields)}: put them together, for example "
            "with F.concat_ws."
        )
    item, (field,) = columns[0], fields
    kind = arrow_type(field.name, field.dataType)
    if not is_plain(kind):
        raise SkewlessError(
            f"Column '{field.name}' of type {field.dataType.simpleString()} cannot be counted: it "
            "takes values without inner structure; cast it to a string first."
        )
    same = name_rule(df)
    # Says now what is wrong with `by`, before our columns are beside the user's.
    parts = [] if by is None else [part.name for part in group_keys(df, by).fields]
    for name in (field.name, *parts):
        if same(name) in map(same, results):
            raise SkewlessError(
                f"The result has a column '{name}' of its own: rename the key with .alias(...)."
            )
    if same(field.name) in map(same, parts):
        raise SkewlessError(
            f"The key and by= are both called '{field.name}': rename one with .alias(...)."
        )
    hashed = identity(columns, fields).alias(IDENTITY)
    rows = df.select("*", _as_grouped(item, field.dataType).alias(ITEM), hashed, *more)
    count = worker_count(df, workers)
    texts = tuple(text_of(df, column) for column in (item, *more))
    return Counting(rows, field, kind, by, made, count, check_seed(seed), texts)


def _as_grouped(item: Column, kind: DataType) -> Column:
    """The item as Spark's groupBy shows it: -0.0 is 0.0."""
    if not isinstance(kind, DoubleType | FloatType):
        return item
    return F.when(item == 0, F.lit(0.0).cast(kind)).otherwise(item)


def at_least_one(what: str, value: int, most: int | None = None) -> int:
    """A whole number of 1 or more, and of no more than the most, or one sentence."""
    number = whole(what, value)
    if number < 1:
        raise SkewlessError(f"{what} must be at least 1, not {number}.")
    if most is not None and number > most:
        raise SkewlessError(f"{what} must be at most {most:,}, not {number:,}.")
    return number
