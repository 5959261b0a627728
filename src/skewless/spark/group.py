"""The keyed computation with even work: route, fold on the workers, merge by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from skewless.errors import SkewlessError
from skewless.folds import Fold, check_fold
from skewless.folds.worker import fold_batches, split_sorted
from skewless.schemes import Scheme
from skewless.schemes.api import Arrays
from skewless.spark.inputs import (
    Key,
    check_group_key,
    check_scheme,
    check_server,
    key_columns,
    make_plan,
)
from skewless.spark.job import BoundFolds, bind, key_names
from skewless.spark.merge import merge_by_key
from skewless.spark.route import place

MOST_KEYS = 1_000_000
MOST_BYTES = 256 << 20


def group(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str,
    workers: int,
    *,
    seed: int = 0,
    plan: Arrays | None = None,
    most_keys: int = MOST_KEYS,
    most_bytes: int = MOST_BYTES,
) -> Grouping:
    """Group rows by key for `fold`, with the work spread over workers by a scheme.

    most_keys, most_bytes: a worker that holds partials of more keys or bytes than this hands
    them on to the merge and starts afresh
    """
    check_server(df)
    made = check_scheme(scheme)
    used = make_plan(made, workers, seed, plan)
    if most_keys < 1 or most_bytes < 1:
        raise SkewlessError(
            f"A worker must be allowed to hold at least 1 key and 1 byte, not {most_keys} keys "
            f"and {most_bytes} bytes: give most_keys and most_bytes of 1 or more."
        )
    columns, fields = key_columns(df, key)
    for field in fields:
        check_group_key(field.name, field.dataType)
    return Grouping(df, tuple(columns), tuple(fields), made, used, workers, most_keys, most_bytes)


@dataclass(frozen=True)
class Grouping:
    """A DataFrame whose rows are about to be folded by key; made by `group`."""

    df: DataFrame
    keys: tuple[Column, ...]
    fields: tuple[StructField, ...]
    scheme: Scheme
    plan: Arrays
    workers: int
    most_keys: int
    most_bytes: int

    def fold(self, *folds: Fold, sample: Mapping[str, Any] | pa.Table | None = None) -> DataFrame:
        """One row per key with the result of each fold, exactly as of a plain groupBy.

        sample: a few messages (column name to values) on which the laws of each fold are checked
        before any job starts
        """
        bound = self.bind(*folds)
        for fold in folds if sample is not None else ():
            check_fold(fold, sample or {})
        return merge_by_key(self.partials(bound), bound)

    def bind(self, *folds: Fold) -> BoundFolds:
        """The folds bound to this DataFrame's columns."""
        return bind(self.df, self.fields, folds, self.most_keys, self.most_bytes)

    def partials(self, bound: BoundFolds) -> DataFrame:
        """What the workers hand to the merge: route, shuffle, fold."""
        job = bound.job

        def fold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return fold_batches(job, batches)

        values = [F.col(name) for name in bound.values]
        return self._placed(values).mapInArrow(fold, bound.partial_schema)

    def apply(
        self, function: Callable[[pa.Table], pa.Table], schema: StructType | str
    ) -> DataFrame:
        """Call a function with all rows of each key, for work that cannot be merged (a median).

        Only for schemes that give a key one worker. The function takes and gives Arrow tables, as
        in Spark's `applyInArrow`; one key's rows must fit into memory.
        """
        if not self.scheme.one_worker_per_key:
            raise SkewlessError(
                f"Scheme '{self.scheme.spec}' spreads a key over several workers, so no worker "
                "sees all rows of a key: use a scheme with one worker per key, such as 'key', "
                "or a fold that can be merged."
            )
        count, names = len(self.keys), self.df.columns

        def named(table: pa.Table) -> pa.Table:
            return function(table.rename_columns(names))

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return split_sorted(count, batches, named)

        placed = self._placed([F.col(f"`{name.replace('`', '``')}`") for name in names])
        return placed.sortWithinPartitions(*key_names(count)).mapInArrow(call, schema)

    def describe(self, *folds: Fold) -> str:
        """What `fold` will run, in words."""
        bound = self.bind(*folds)
        by_column = self.scheme.table(self.plan) is not None
        way = "a Column expression" if by_column else "a compiled kernel in Spark's Python workers"
        keys = ", ".join(field.name for field in self.fields)
        names = ", ".join(fold.name for fold in folds)
        columns = ", ".join([keys, *bound.values])
        merging = (
            "Spark's own aggregates merge the partials by key"
            if bound.natives
            else "Spark sorts the partials by key and Python merges them"
        )
        return (
            f"1. Route: scheme {self.scheme.spec} gives each row one of {self.workers} workers "
            f"by the hash of {keys}, in {way}.\n"
            f"2. Shuffle: each row goes to its worker's partition, with {columns} only.\n"
            f"3. Fold: each worker folds its rows into one partial per key ({names}), and hands "
            f"its partials on early beyond {self.most_keys:,} keys or {self.most_bytes:,} bytes.\n"
            f"4. Merge: after a shuffle of the partials, {merging}."
        )

    def explain(self, *folds: Fold) -> None:
        """Print what `fold` will run, in words; see the DataFrame's own explain for the plan."""
        print(self.describe(*folds))

    def _placed(self, values: list[Column]) -> DataFrame:
        """The keys and values, under internal names, on the partitions of their workers."""
        names = key_names(len(self.keys))
        keys = [column.alias(name) for column, name in zip(self.keys, names, strict=True)]
        sent = [column.alias(f"v{i}") for i, column in enumerate(values)]
        rows = self.df.select(*keys, *sent)
        return place(rows, F.xxhash64(*names), self.scheme, self.plan, self.workers)
