"""What differs between the Sparks that are supported, all in one place.

- Rows go to a numbered partition by `repartitionById` from 4.1 on. Before, by the hash of a number
  that is chosen so that its hash is the partition's (see `surrogates`).
- Routing runs in an Arrow function from 4.1 on, before in a pandas function of iterators.
- Routing depends on the order of rows, and a task that is retried after a shuffle was lost may see
  another. From 4.2 on Spark notices, by checksums that do not depend on the order, and runs all
  that follows again; 4.1 does so where it is told to. Where it does not, rows are put into an order
  of their own first, as Spark's own round robin does.
- State per worker (`transformWithState`), collations and `toArrow` exist from 4.0 on.
- From 4.0 on PySpark logs each error of an analysis, also one that is caught.
"""

from __future__ import annotations

import inspect
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StringType

from skewless.errors import SkewlessError
from skewless.spark.input.surrogates import surrogate

JAVA_WITH_SHORTEST_FLOATS = 19  # before, some floats had a digit more than tells them apart
OLDEST_SPARK = (3, 5)
HAS_NUMBERED_PARTITIONS = (4, 1)
HAS_CHECKSUMS = (4, 1)
CHECKSUMS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
WORKER = "skewless worker"

ArrowFunction = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]

_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_answered: ContextVar[bool] = ContextVar("answered", default=False)

try:
    from pyspark.logger import PySparkLogger
except ImportError:  # before 4.0
    PySparkLogger = None  # type: ignore[assignment, misc]
try:
    from pyspark.sql.pandas.functions import arrow_udf
except ImportError:  # before 4.1
    arrow_udf = None  # type: ignore[assignment]
try:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor as StatefulProcessor
except ImportError:  # before 4.0
    StatefulProcessor = None  # type: ignore[assignment, misc]
try:
    from pyspark.sql.types import VariantType
except ImportError:  # before 4.0
    VariantType = None  # type: ignore[assignment, misc]


def parsed(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2])


def check_version(version: str, what: str) -> None:
    """Refuse a Spark that is too old."""
    if parsed(version) < OLDEST_SPARK:
        raise SkewlessError(
            f"{what} is version {version}, and skewless needs "
            f"{'.'.join(map(str, OLDEST_SPARK))} or later: upgrade it."
        )


@contextmanager
def unlogged() -> Iterator[None]:
    """Around what may raise an AnalysisException that is caught.

    PySpark would print a page of JSON with stack traces for it.
    """
    for name in _LOGGERS if PySparkLogger is not None else ():
        PySparkLogger.getLogger(name).addFilter(_is_not_answered)
    token = _answered.set(True)
    try:
        yield
    finally:
        _answered.reset(token)


def _is_not_answered(record: logging.LogRecord) -> bool:
    return not _answered.get()


def is_variant(kind: DataType) -> bool:
    """Whether values of this type are variants."""
    return VariantType is not None and isinstance(kind, VariantType)


def is_calendar_interval(kind: DataType) -> bool:
    """Whether values of this type are intervals of the calendar."""
    return kind.simpleString() == "interval"


def collation_of(kind: StringType) -> str:
    """How Spark compares such text."""
    return getattr(kind, "collation", "UTF8_BINARY")


def arrow_type_of(kind: DataType) -> pa.DataType:
    """The Arrow type in which Spark hands such values to Python."""
    if "timezone" in inspect.signature(to_arrow_type).parameters:
        return to_arrow_type(kind, timezone="UTC")
    return to_arrow_type(kind)


def as_arrow(df: DataFrame) -> pa.Table:
    """All rows on the driver; Spark before 4.0 gives them only one by one."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    schema = pa.schema([(field.name, arrow_type_of(field.dataType)) for field in df.schema.fields])
    return pa.Table.from_pylist([row.asDict() for row in df.collect()], schema=schema)


def application_of(spark: SparkSession) -> str:
    """The application that a session is of; on Connect, the session."""
    context = getattr(spark, "_sc", None)
    return str(context.applicationId if context is not None else spark.session_id)  # type: ignore[attr-defined]


def java_of(spark: SparkSession) -> int:
    """The version of Java that Spark runs on."""
    asked = "reflect('java.lang.System', 'getProperty', 'java.specification.version')"
    found = spark.sql(f"select {asked} as java").first()
    return int(found["java"].removeprefix("1.").split(".")[0]) if found else 0


def takes_star(df: DataFrame) -> bool:
    """Whether a function in a condition may be called with all columns of a row, `F.col("*")`."""
    return parsed(df.sparkSession.version) >= (4, 0)


def keeps_backticks(df: DataFrame, part: str) -> bool:
    """Whether aggregates of a column with this in its name show it in backticks, as before 4.0."""
    return "." in part and parsed(df.sparkSession.version) < (4, 0)


def answer_of(query: str, **frames: DataFrame) -> Row | None:
    """The first row of a query with `{name}` for each DataFrame, all of one session.

    Only by views does Spark Connect before 4.0 have DataFrames in a query.
    """
    spark = next(iter(frames.values())).sparkSession
    if parsed(spark.version) >= (4, 0):
        return spark.sql(query, None, **frames).first()
    views = {name: f"skewless_{uuid.uuid4().hex}" for name in frames}
    try:
        for name, view in views.items():
            frames[name].createOrReplaceTempView(view)
        return spark.sql(query.format(**views)).first()
    finally:
        for name, view in views.items():
            frames[name].sparkSession.catalog.dropTempView(view)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session can run nothing any more; only one of Connect has a word for it."""
    if hasattr(spark, "is_stopped"):
        return bool(spark.is_stopped)
    return getattr(getattr(spark, "_sc", None), "_jsc", spark) is None


def valid_text(column: Column) -> Column:
    """Text that can be shown; Spark before 4.0 has no word for what is not UTF-8 in it."""
    return F.make_valid_utf8(column) if hasattr(F, "make_valid_utf8") else column


def to_partitions(df: DataFrame, partitions: int, number: Column) -> DataFrame:
    """The rows, each on the partition of its number."""
    if parsed(df.sparkSession.version) >= HAS_NUMBERED_PARTITIONS:
        return df.repartitionById(partitions, number)
    wanted = F.lit([surrogate(partition) for partition in range(partitions)])
    # As a column of its own: in front of a shuffle by an expression Spark drops the rows' order.
    sent = df.withColumn(WORKER, number)
    placed = sent.repartition(partitions, F.get(wanted, F.col(f"`{WORKER}`")))
    return placed.drop(WORKER)


def notices_other_order(df: DataFrame) -> bool:
    """Whether Spark runs again what followed a shuffle whose rows came in another order."""
    spark = df.sparkSession
    if parsed(spark.version) < HAS_CHECKSUMS:
        return False
    return all(str(spark.conf.get(name)).lower() == "true" for name in CHECKSUMS)


def arrow_function(function: ArrowFunction, returns: str) -> Callable[[Column], Column]:
    """A function of Arrow batches as one of columns, which Spark runs once for each row.

    It is marked as nondeterministic, else Catalyst might run it twice, the second time otherwise.
    """
    if arrow_udf is not None:
        udf: Any = arrow_udf  # its stubs know only the form that Spark warns about
        made: Callable[[Column], Column] = udf(function, returns).asNondeterministic()
        return made
    from pyspark.sql.pandas.functions import pandas_udf

    by_pandas: Any = pandas_udf
    made = by_pandas(_by_pandas(function, returns), returns).asNondeterministic()
    return made


def _by_pandas(function: ArrowFunction, returns: str) -> Any:
    import pandas as pd  # type: ignore[import-untyped]

    def arrays(batches: Iterator[Any]) -> Iterator[pa.Array]:
        for batch in batches:
            if isinstance(batch, pd.DataFrame):  # a struct
                fields = [pa.array(batch[name].to_numpy()) for name in batch]
                yield pa.StructArray.from_arrays(fields, names=list(batch))
            else:
                yield pa.array(batch.to_numpy())

    def one_column(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for array in function(arrays(batches)):
            yield pd.Series(array.to_numpy(zero_copy_only=False))

    def several_columns(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
        for struct in function(arrays(batches)):
            names = [field.name for field in struct.type]
            parts = (part.to_numpy(zero_copy_only=False) for part in struct.flatten())
            yield pd.DataFrame(dict(zip(names, parts, strict=True)))

    whole = returns.startswith("struct")
    chosen: Any = several_columns if whole else one_column
    # Annotations are text in this module, and pandas_udf reads types.
    result: Any = Iterator[pd.DataFrame] if whole else Iterator[pd.Series]
    chosen.__annotations__ = {"batches": Iterator[pd.Series], "return": result}
    return chosen


def spark_type_of(kind: pa.DataType) -> DataType:
    """Spark's type of an Arrow type; before 4.1 a time without a zone would get one."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
