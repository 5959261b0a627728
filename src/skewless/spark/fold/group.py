"""The keyed computation with even work: route, fold on the workers, merge by key.

The same on a batch and on a stream, where the merge keeps its state in Spark's state store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from skewless._version import __version__
from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.folds import Fold, check_fold
from skewless.folds.worker import split_sorted
from skewless.schemes import Scheme
from skewless.schemes.api import Arrays
from skewless.spark.adapt.control import Control, learns_between_batches
from skewless.spark.adapt.planned import plan_facts
from skewless.spark.adapt.plans import StreamFolder, stream_folder
from skewless.spark.adapt.watch import Watch, sole_operator
from skewless.spark.fold.bind import BoundFolds, bind
from skewless.spark.fold.merge import merge_by_key
from skewless.spark.fold.on_workers import fold_on_workers
from skewless.spark.fold.stream import check_output_mode, merge_stream
from skewless.spark.input.checks import (
    DEFAULT,
    DEFAULT_FOR_WHOLE_GROUPS,
    Key,
    Salt,
    check_scheme,
    check_server,
)
from skewless.spark.input.conform import declared_for_apply, schema_of
from skewless.spark.input.keys import COST, SALT, Keys, group_keys
from skewless.spark.input.types import arrow_type
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.observe.observer import Observer, check_observer
from skewless.spark.routing.costs import cost_column, weighed
from skewless.spark.routing.plan import Plan, chosen
from skewless.spark.routing.route import place, salt_of

MOST_KEYS = 1_000_000
MOST_BYTES = 256 << 20


def group(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str | Plan | None = None,
    workers: int | None = None,
    *,
    seed: int = 0,
    plan: Plan | Arrays | None = None,
    salt: Key | None = None,
    cost: str | Column | None = None,
    capacities: Sequence[float] | None = None,
    checkpoint: str | None = None,
    observer: Observer | None = None,
    most_keys: int = MOST_KEYS,
    most_bytes: int = MOST_BYTES,
) -> Grouping:
    """Group rows by key for `fold` or `apply`, with the work spread over workers by a scheme.

    key: a name, a Column or a list of them, at most one of them an `F.window(…)`
    scheme: a scheme, its spec string, or a plan from `learn`; by default `graded`, and `key` for
        `apply`, which needs one worker per key
    workers: by default, as many as Spark's own shuffles have partitions
    plan, salt: as for `skewless.spark.route`; with a checkpoint the salt is not needed
    cost: what the work for each row costs, a column of numbers in any unit: `graded` then evens
        out costs instead of rows
    capacities: how fast each worker is compared with the others, such as [1, 1, 3, 3]: `graded`
        then gives each its share
    checkpoint: on a stream, the folder of its checkpoint, which the driver and the executors must
        share as files. Schemes that learn keep their plans there. A restart may change the
        scheme, the number of workers and the seed. Without it, each micro-batch starts from scratch
    observer: records how even each run or micro-batch was
    most_keys, most_bytes: a worker that holds partials of more keys or bytes than this flushes
        them to the merge and starts again
    """
    check_server(df)
    check_workers_python(df.sparkSession, __version__)
    check_observer(observer)
    asked = DEFAULT if scheme is None else scheme
    learns = learns_between_batches if checkpoint is not None else lambda scheme: False
    chose = chosen(df, asked, workers, seed, plan, learns, capacities)
    made, count, seed, used, rates = chose
    costs = cost_column(df, made, cost)
    most_keys, most_bytes = whole("most_keys", most_keys), whole("most_bytes", most_bytes)
    if most_keys < 1 or most_bytes < 1:
        raise SkewlessError(
            f"A worker must be allowed to hold at least 1 key and 1 byte, not {most_keys} keys "
            f"and {most_bytes} bytes: give most_keys and most_bytes of 1 or more."
        )
    keys = group_keys(df, key)
    control = folder = None
    if checkpoint is not None:
        if not df.isStreaming:
            raise SkewlessError(
                "A checkpoint belongs to a stream, and this DataFrame is not one: leave "
                "checkpoint= out, or read with spark.readStream."
            )
        folder = stream_folder(checkpoint, made, count, seed, rates).resume()
        if learns(made):
            control = Control(folder)
            control.begin(used)
    salted = None if control else salt_of(df, keys.routing_fields(), made, used, salt)
    for_groups = None
    if scheme is None and control is None and costs is None and rates is None:
        one = check_scheme(DEFAULT_FOR_WHOLE_GROUPS)
        first = one.plan(count, seed)
        for_groups = Grouping(df, keys, one, first, count, most_keys, most_bytes, None, observer)
    return Grouping(
        df,
        keys,
        made,
        used,
        count,
        most_keys,
        most_bytes,
        control,
        observer,
        salted,
        folder,
        for_groups,
        costs,
    )


@dataclass(frozen=True)
class Grouping:
    """What `group` returns: a DataFrame whose rows are about to be folded by key."""

    df: DataFrame
    keys: Keys
    scheme: Scheme
    plan: Arrays
    workers: int
    most_keys: int
    most_bytes: int
    control: Control | None = None
    observer: Observer | None = None
    salt: Salt | None = None
    folder: StreamFolder | None = None
    for_groups: Grouping | None = None  # the same for `apply`, where no scheme was asked for
    cost: Column | None = None

    def fold(
        self,
        *folds: Fold,
        sample: Mapping[str, Any] | pa.Table | None = None,
        output_mode: str = "update",
    ) -> DataFrame:
        """One row per key with the result of each fold, exactly as a plain groupBy gives.

        sample: a few messages (column name to values), on which the laws of each fold are checked
            before any job starts
        output_mode: on a stream with folds that only Python can merge, the mode in which the
            result will be written, "update" or "append"; all other folds follow
            `writeStream.outputMode`
        """
        check_output_mode(output_mode)
        bound = self.bind(*folds)
        bound.job.on_worker(self.workers - 1)  # says now if a fold knows fewer workers
        for fold in bound.job.folds if sample is not None else ():
            check_fold(fold, sample or {})
        if self.folder is not None:
            self.folder.claim_state(bound.facts)
        watch = None
        if self.control is not None or self.observer is not None:
            facts = plan_facts(self.scheme, self.plan)
            watch = Watch(self.scheme.spec, self.workers, self.control, self.observer, facts)
        partials = self.partials(bound, watch)
        if self.df.isStreaming:
            if self.folder is not None:
                partials = sole_operator(partials, self.folder)
            return merge_stream(partials, bound, output_mode)
        merged = merge_by_key(partials, bound)
        return merged if watch is None else watch.results(merged)

    agg = fold  # as Spark calls it

    def __repr__(self) -> str:
        keys = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in self.keys.fields)
        kind = "stream" if self.df.isStreaming else "table"
        return f"Grouping({kind} by {keys}: {self.scheme.spec}, {self.workers} workers)"

    def bind(self, *folds: Fold) -> BoundFolds:
        """The folds bound to this DataFrame's columns."""
        return bind(self.df, self.keys, folds, self.most_keys, self.most_bytes)

    def partials(self, bound: BoundFolds, watch: Watch | None = None) -> DataFrame:
        """What the workers hand to the merge: route, shuffle, fold."""
        values = [value.column for value in bound.values]
        return fold_on_workers(self._placed(values, watch), bound, watch)

    def apply(
        self, function: Callable[[pa.Table], pa.Table], schema: StructType | str
    ) -> DataFrame:
        """Call a function with all rows of each key, for work that cannot be merged (a median).

        Only for schemes that give a key one worker. The function takes and gives Arrow tables, as
        in Spark's `applyInArrow`; one key's rows must fit into memory.
        """
        if self.for_groups is not None:
            return self.for_groups.apply(function, schema)
        if not self.scheme.one_worker_per_key:
            raise SkewlessError(
                f"Scheme '{self.scheme.spec}' spreads a key over several workers, so no worker "
                "sees all rows of a key: use a scheme with one worker per key, such as 'key', "
                "or a fold that can be merged."
            )
        if self.df.isStreaming:
            raise SkewlessError(
                "apply needs all rows of a key at once, and a stream never has them all: use a "
                "fold, skewless.spark.per_worker, or foreachBatch."
            )
        if not callable(function):
            raise SkewlessError(
                f"apply takes a function from a pyarrow.Table to another, not {function!r}."
            )
        count, names = len(self.keys.names()), self.df.columns
        for field in self.df.schema.fields:
            arrow_type(field.name, field.dataType)  # says now if Python cannot have it
        spark = self.df.sparkSession
        declared = declared_for_apply(spark, schema_of(spark, schema))

        def named(table: pa.Table) -> pa.Table:
            result = function(table.rename_columns(names))
            if not isinstance(result, pa.Table):
                kind = "None" if result is None else f"a {type(result).__name__}"
                raise SkewlessError(
                    f"The function of apply returned {kind}: let it return a pyarrow.Table, an "
                    "empty one for no rows."
                )
            return declared.conform(result)

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return split_sorted(count, batches, named)

        placed = self._placed(None)
        return placed.sortWithinPartitions(*self.keys.names()).mapInArrow(call, schema)

    def describe(self, *folds: Fold) -> str:
        """What `fold` will run, in words."""
        bound = self.bind(*folds)
        by_column = self.control is None and self.scheme.table(self.plan) is not None
        way = "a Column expression" if by_column else "a compiled kernel in Spark's Python workers"
        if self.salt is not None:
            way += f" that splits hot keys by the hash of {', '.join(self.salt.names)}"
        routing = ", ".join(field.name for field in self.keys.routing_fields())
        keys = ", ".join(field.name for field in self.keys.fields)
        names = ", ".join(fold.name for fold in bound.job.folds)
        columns = ", ".join([keys, *(value.name for value in bound.values)])
        if bound.natives:
            merging = "Spark's own aggregates merge the partials by key"
        elif self.df.isStreaming:
            merging = "Python merges the partials of each key"
        else:
            merging = "Spark sorts the partials by key and Python merges them"
        if self.df.isStreaming:
            merging += ", with what earlier micro-batches left in Spark's state store"
        return (
            f"1. Route: scheme {self.scheme.spec} gives each row one of {self.workers} workers "
            f"by the hash of {routing}, in {way}.\n"
            f"2. Shuffle: each row goes to its worker's partition, with {columns} only.\n"
            f"3. Fold: each worker folds its rows into one partial per key ({names}), and flushes "
            f"its partials early beyond {self.most_keys:,} keys or {self.most_bytes:,} bytes.\n"
            f"4. Merge: after a shuffle of the partials, {merging}."
        )

    def explain(self, *folds: Fold) -> None:
        """Print what `fold` will run, in words; see the DataFrame's own explain for the plan."""
        print(self.describe(*folds))

    def _placed(self, values: list[Column] | None, watch: Watch | None = None) -> DataFrame:
        """The keys and values, under internal names, on the partitions of their workers.

        values: None for all columns
        """
        hashed = None if self.salt is None else self.salt.hashed
        besides = {SALT: hashed, COST: self.cost}
        rows = self.keys.select(self.df, values, **besides)
        salt, cost = (None if column is None else F.col(name) for name, column in besides.items())
        identity = self.keys.identity()
        if watch is not None and self.control is not None:
            placed = watch.placed(rows, weighed(identity, cost), self.control)
        else:
            placed = place(rows, identity, self.scheme, self.plan, self.workers, salt, cost)
        return placed.drop(*(name for name, column in besides.items() if column is not None))
