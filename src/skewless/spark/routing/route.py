"""Which worker handles each row: a column of worker numbers, and the shuffle that follows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from skewless._version import __version__
from skewless.compiled.shipping import Shipment
from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.schemes.api import Arrays
from skewless.spark.input.checks import (
    DEFAULT,
    Key,
    Salt,
    check_server,
    column_named,
    key_columns,
    name_rule,
    salt_columns,
)
from skewless.spark.input.version import (
    CHECKSUMS,
    HAS_CHECKSUMS,
    ArrowFunction,
    arrow_function,
    notices_other_order,
    parsed,
    to_partitions,
)
from skewless.spark.input.wire import identity as key_identity
from skewless.spark.input.wire import orderable
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.report.task import Task
from skewless.spark.routing.columns import worker_of
from skewless.spark.routing.costs import Weights, cost_column, weighed
from skewless.spark.routing.plan import Chosen, Plan, chosen


def route(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str | Plan = DEFAULT,
    workers: int | None = None,
    *,
    seed: int = 0,
    column: str = "worker",
    plan: Plan | Arrays | None = None,
    salt: Key | None = None,
    cost: str | Column | None = None,
    capacities: Sequence[float] | None = None,
) -> DataFrame:
    """The DataFrame with a column that names each row's worker, 0 … workers − 1.

    The same seed and the same order of rows give the same route.

    key: a column's name, a Column, or a list of them
    scheme: a scheme, its spec string, such as "partial:choices=5", or a plan from `learn`, which
        knows its number of workers and seed; by default `graded`
    workers: by default, as many as Spark's own shuffles have partitions
    column: the name of the new column
    plan: a plan of the scheme, learned before, if it is not passed as the scheme
    salt: for a plan that splits hot keys (graded-planned), what tells rows of one key apart: a
        column's name, a Column or a list of them; by default, all other columns
    cost: what each row costs, a column of numbers, for schemes that even out costs (graded)
    capacities: how fast each worker is compared with the others, for the same schemes
    """
    check_server(df)
    made = chosen(df, scheme, workers, seed, plan, capacities=capacities)
    rows, worker = _routing(df, key, made, salt, cost)
    _check_free(df, column)
    return rows.withColumn(column, worker)


def repartition(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str | Plan = DEFAULT,
    workers: int | None = None,
    *,
    seed: int = 0,
    column: str | None = None,
    plan: Plan | Arrays | None = None,
    salt: Key | None = None,
    cost: str | Column | None = None,
    capacities: Sequence[float] | None = None,
) -> DataFrame:
    """The DataFrame in `workers` partitions: partition i holds the rows of worker i.

    column: the name under which to keep the worker numbers; by default they are dropped
    plan, salt, cost, capacities: as for `route`
    """
    check_server(df)
    made = chosen(df, scheme, workers, seed, plan, capacities=capacities)
    rows, worker = _routing(df, key, made, salt, cost)
    if column is not None:
        _check_free(df, column)
        return to_partitions(rows.withColumn(column, worker), made.workers, column_named(column))
    # The expression stands in the shuffle itself: a column of worker numbers would travel too.
    return to_partitions(rows, made.workers, worker)


def place(
    df: DataFrame,
    identity: Column,
    scheme: Scheme,
    plan: Arrays,
    workers: int,
    salted: Column | None = None,
    cost: Column | None = None,
) -> DataFrame:
    """The rows on the partitions of their workers; see `routing`."""
    rows, worker = routing(df, identity, scheme, plan, salted, cost)
    return to_partitions(rows, workers, worker)


def _routing(
    df: DataFrame,
    key: Key,
    made: Chosen,
    salt: Key | None,
    cost: str | Column | None,
) -> tuple[DataFrame, Column]:
    keys, fields = key_columns(df, key)
    found = salt_of(df, fields, made.scheme, made.plan, salt)
    salted = None if found is None else found.hashed
    costs = cost_column(df, made.scheme, cost)
    return routing(df, key_identity(keys, fields), made.scheme, made.plan, salted, costs)


def salt_of(
    df: DataFrame, key: Sequence[StructField], scheme: Scheme, plan: Arrays, salt: Key | None
) -> Salt | None:
    """The salt, if the plan becomes an expression that needs one; a wrong one is refused anyway."""
    table = scheme.table(plan)
    needed = table is not None and table.splits
    if salt is None and not needed:
        return None
    found = salt_columns(df, key, salt)
    return found if needed else None


def routing(
    df: DataFrame,
    identity: Column,
    scheme: Scheme,
    plan: Arrays,
    salted: Column | None = None,
    cost: Column | None = None,
) -> tuple[DataFrame, Column]:
    """The rows to route, and the worker of each, from the identity of its key.

    Without a tally the plan becomes an expression; else the compiled kernel runs in Python workers.
    So it does for a plan that splits keys where no salt tells their rows apart: it numbers them.

    salted: the hash of the row's salt
    cost: what the row costs
    """
    table = scheme.table(plan)
    if table is not None and cost is not None:
        raise SkewlessError(
            "The plan was made before the rows are seen, so it cannot heed what each costs: give "
            "cost= to learn, and leave it out here."
        )
    if table is not None and (salted is not None or not table.splits):
        return df, worker_of(identity, table, salted)
    return row_by_row(df), in_python(_kernel(scheme, plan), "int", weighed(identity, cost))


def row_by_row(df: DataFrame) -> DataFrame:
    """The same rows, ready to be routed by their order.

    Where Spark would not notice that a retried task saw them in another order, they are put into
    one that depends on nothing but the rows. Else they are only made rows, not columns as a file
    was read in: Spark hands columns to Arrow functions as they are, but turns them into rows, and
    the rows into columns again, to keep what the function does not take, a fifth of all the time.
    """
    check_workers_python(df.sparkSession, __version__)
    if notices_other_order(df):
        return df.where(F.spark_partition_id() >= 0)  # true of all, and Spark cannot know
    if df.isStreaming:
        version = df.sparkSession.version
        remedy = "use 'key' or a learned plan, or group each micro-batch as a batch in foreachBatch"
        if parsed(version) >= HAS_CHECKSUMS:
            remedy = f"set {' and '.join(CHECKSUMS)} to true"
        raise SkewlessError(
            "On a stream, schemes that count what they send are exact under retries only if Spark "
            f"compares checksums of its shuffles, which this one ({version}) does not: {remedy}."
        )
    return df.sortWithinPartitions(*_order_of_rows(df)) if df.columns else df


def _order_of_rows(df: DataFrame) -> list[Column]:
    """What to sort rows by so that only equal ones may change places.

    A hash comes first, as it is soon compared. It skips nulls, so it may be that of other rows too.
    """
    same = name_rule(df)
    often = [n for n, count in Counter(map(same, df.columns)).items() if count > 1]
    if often:
        raise SkewlessError(
            f"There are several columns called '{often[0]}', and Spark {df.sparkSession.version} "
            "can route rows exactly only by the names of all columns: rename them."
        )
    fields = df.schema.fields
    values = [orderable(column_named(field.name), field.dataType) for field in fields]
    return [F.xxhash64(*values), *values]


def in_python(function: ArrowFunction, returns: str, rows: Column) -> Column:
    """What a function of Arrow batches says of each key's identity, or of that and a cost."""
    return arrow_function(function, returns)(rows)


class TaskRouter:
    """One source: the tally of one task, which starts empty and sees the task's rows in order."""

    def __init__(self, scheme: Scheme, plan: Arrays, source: int) -> None:
        self.scheme, self.plan = scheme, plan
        self.tally = scheme.tally(plan, source)
        self.messages = 0
        self._weights = Weights(scheme)

    def route(self, rows: pa.Array) -> npt.NDArray[np.int32]:
        """The worker of each row of a batch: of its identity, or of that and a cost."""
        identities, weights = self._weights.of(rows)
        count = identities.size
        out = np.empty(count, np.int32)
        self.tally = self.scheme.reserve(self.tally, count)
        times = np.arange(self.messages, self.messages + count, dtype=np.float64)
        keys = identities.view(np.uint64)
        self.scheme.send(self.plan, self.tally, keys, times, out, weights)
        self.messages += count
        return out

    def report(self) -> Arrays:
        """What the driver may learn from this source."""
        return self.scheme.report(self.plan, self.tally)


def _kernel(scheme: Scheme, plan: Arrays) -> ArrowFunction:
    shipped = Shipment((scheme, plan), lambda: scheme.warm_up(plan))

    def workers_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        router = TaskRouter(*shipped.value, Task.current().partition)
        for batch in batches:
            yield pa.array(router.route(batch))

    return workers_of


def _check_free(df: DataFrame, column: str) -> None:
    if not isinstance(column, str) or not column:
        raise SkewlessError(
            f"The worker column's name is a text that is not empty, not {column!r}: name it with "
            "column=."
        )
    same = name_rule(df)
    if same(column) in map(same, df.columns):
        raise SkewlessError(
            f"The DataFrame already has a column '{column}': "
            "name the worker column otherwise with column=."
        )
