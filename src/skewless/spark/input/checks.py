"""What a user hands to Spark, checked in one place before any job starts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)

from skewless.arguments import whole
from skewless.errors import SkewlessError, unknown
from skewless.hashing import SALT, check_seed
from skewless.schemes import Scheme, scheme_of
from skewless.schemes.api import F64, Arrays, check_workers
from skewless.spark.input.version import check_version, is_stopped, is_variant, unlogged
from skewless.spark.input.wire import check_key

Key = str | Column | Sequence[str | Column]
DEFAULT = "graded"  # the scheme that is best in general
DEFAULT_FOR_WHOLE_GROUPS = "key"
PARTITIONS = "spark.sql.shuffle.partitions"
USUAL_PARTITIONS = 200
WINDOW, SESSION = "spark.timeWindow", "spark.sessionWindow"


def check_server(df: DataFrame) -> None:
    """Refuse a DataFrame of an old Spark: a new client may talk to an old server."""
    if isinstance(df, Column) or not hasattr(df, "sparkSession"):  # a Column has any attribute
        kind, way = _said_of(df), "make one with spark.createDataFrame or spark.read"
        if type(df).__module__.startswith("pyspark.pandas"):
            kind, way = f"a pandas-on-Spark {type(df).__name__}", "hand over its to_spark()"
        elif type(df).__module__.startswith("pandas"):
            kind, way = f"a pandas {type(df).__name__}", "make one with spark.createDataFrame"
        raise SkewlessError(f"A Spark DataFrame is needed here, not {kind}: {way}.")
    if is_stopped(df.sparkSession):
        raise SkewlessError(
            "The DataFrame's Spark session was stopped: start another and read the data again."
        )
    check_version(df.sparkSession.version, "The Spark server")


def _said_of(thing: Any) -> str:
    """What kind of thing it is, with its article."""
    if thing is None:
        return "None"
    name = type(thing).__name__
    is_spelt = name.isupper() and name[0] in "FHLMNRSX"  # as in "an RDD"
    return f"{'an' if is_spelt or name[0] in 'AEIOaeio' else 'a'} {name}"


@dataclass(frozen=True)
class Salt:
    """Columns that tell rows of one key apart; made by `salt_columns`."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]

    @property
    def hashed(self) -> Column:
        """The hash that picks one of a split key's workers, with a literal that no choice has."""
        return F.xxhash64(F.lit(SALT), *self.columns)


def field_of(df: DataFrame, column: str | Column, what: str = "key") -> StructField:
    """The name and type of a column or expression, by analysis alone; an unknown one is refused."""
    try:
        with unlogged():
            fields = df.select(column).schema.fields
    except AnalysisException as error:
        if isinstance(column, str):
            raise _not_found(df, column) from None
        reason = str(error).splitlines()[0]
        raise SkewlessError(
            f"The {what} {column} cannot be computed from the columns {', '.join(df.columns)}: "
            f"{reason}"
        ) from None
    if len(fields) != 1 or (isinstance(column, str) and column == "*"):
        raise SkewlessError(
            f"The {what} '{column}' is not one column: name each column of it in a list."
        )
    return fields[0]


def _not_found(df: DataFrame, column: str) -> SkewlessError:
    """Why Spark finds no column of this name, or more than one."""
    same, named = name_rule(df), unquoted(column)
    found = [name for name in df.columns if same(name) == same(named)]
    if len(found) > 1:
        return SkewlessError(
            f"The DataFrame has {len(found)} columns called '{named}': rename all but "
            "one of them, for example with toDF(...), first."
        )
    if found:
        return SkewlessError(
            f"Column '{named}' has a dot or a backtick in its name, which Spark takes for "
            f"something else: put the name in backticks, '{quoted(named)}'."
        )
    return unknown("column", named, df.columns)


def name_rule(df: DataFrame) -> Callable[[str], str]:
    """Two names are of one column where this makes them equal, as the session has it."""
    exactly = str(df.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    return str if exactly else str.lower


def key_columns(
    df: DataFrame, key: Key, windows: bool = False
) -> tuple[list[Column], list[StructField]]:
    """The key's columns with their names and types.

    windows: whether `F.window(…)` may be among them, for which Spark drops and repeats rows
    """
    columns, fields = row_columns(df, key, "key", windows)
    for field in fields:
        check_key(field.name, field.dataType)
    return columns, fields


def salt_columns(df: DataFrame, key: Sequence[StructField], salt: Key | None) -> Salt:
    """The columns of the salt that was named, or else all others that can be hashed."""
    if salt is not None:
        columns, fields = row_columns(df, salt, "salt")
        for field in fields:
            if not hashable(field.dataType):
                raise SkewlessError(
                    f"Column '{field.name}' of type {field.dataType.simpleString()} cannot be a "
                    "salt: Spark hashes no such value; take fields out of it first."
                )
        return Salt(tuple(columns), tuple(field.name for field in fields))
    same = name_rule(df)
    keys, counts = {same(field.name) for field in key}, Counter(map(same, df.columns))
    # Of two columns with one name none can be named.
    names = [f.name for f in df.schema.fields if hashable(f.dataType) and counts[same(f.name)] == 1]
    others = tuple(name for name in names if same(name) not in keys)
    if not others:
        raise SkewlessError(
            "This plan splits hot keys by a hash of what tells their rows apart, and beside the "
            "key no column does: name a column or an expression with salt=, or use the online "
            "scheme 'graded'."
        )
    return Salt(tuple(map(column_named, others)), others)


def column_named(name: str) -> Column:
    """The column of exactly this name, whatever characters are in it."""
    return F.col(quoted(name))


def quoted(name: str) -> str:
    """The name in backticks, so that Spark reads nothing else into it."""
    return f"`{name.replace('`', '``')}`"


def unquoted(name: str) -> str:
    """The name itself, of one that may stand in backticks."""
    return name[1:-1].replace("``", "`") if name[:1] == name[-1:] == "`" else name


def free_name(taken: Iterable[str], wanted: str) -> str:
    """The name, or one like it that is not taken, however Spark compares names."""
    names = {name.lower() for name in taken}
    while wanted in names:
        wanted += "_"
    return wanted


def row_columns(
    df: DataFrame, given: Key, what: str, windows: bool = False
) -> tuple[list[Column], list[StructField]]:
    """Columns that are computed from one row alone, with their names and types."""
    parts: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    if not parts:
        raise SkewlessError(f"A {what} needs at least one column: give a name, a Column or a list.")
    for part in parts:
        if not isinstance(part, str | Column):
            raise SkewlessError(
                f"A {what} is a column's name, a Column or a list of them, not {part!r}."
            )
    fields = [field_of(df, part, what) for part in parts]
    for part in parts:
        if isinstance(part, Column):
            check_of_one_row(df, part, what, windows)
    return [F.col(p) if isinstance(p, str) else p for p in parts], fields


def check_of_one_row(df: DataFrame, column: Column, what: str, windows: bool = False) -> None:
    """Refuse aggregates and generators, as Spark does inside an expression beside all columns.

    windows: whether it may make a time window
    """
    if not _can_select(df, "*", F.isnull(column)):
        raise SkewlessError(
            f"The {what} {column} is not computed from one row alone: give an expression without "
            "an aggregate or explode, or make it a column of the DataFrame first."
        )
    if not windows:
        _check_no_new_window(df, column, what)


def _check_no_new_window(df: DataFrame, column: Column, what: str) -> None:
    """Refuse what makes a window, whole or in part: Spark allows no second one beside it."""
    # Of a column, not of a literal: Spark Connect would make that window before it knows the key's.
    counts = Counter(name.lower() for name in df.columns)
    once = next((name for name in df.columns if counts[name.lower()] == 1), None)
    if once is None:
        return
    any_time = F.timestamp_seconds(F.isnull(column_named(once)).cast("int"))
    if not _can_select(df, column, F.window(any_time, "1 second")):
        raise SkewlessError(
            f"The {what} {column} is of a time window, for which Spark drops some rows and "
            "repeats others: make it a column with withColumn first, or use group."
        )


def _can_select(df: DataFrame, *columns: str | Column) -> bool:
    try:
        with unlogged():
            _ = df.select(*columns).schema  # Spark Connect analyses no sooner
    except AnalysisException:
        return False
    return True


def hashable(kind: DataType) -> bool:
    """Whether Spark has a hash of such values: of maps and variants it has none."""
    if isinstance(kind, StructType):
        return all(hashable(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return hashable(kind.elementType)
    return not isinstance(kind, MapType) and not is_variant(kind)


def check_scheme(scheme: Scheme | str) -> Scheme:
    """The scheme, if sources that do not talk to each other can follow it."""
    made = scheme_of(scheme)
    if made.learns == "stream":
        raise SkewlessError(
            f"Scheme '{made.spec}' must see every key before it routes the first: it is for "
            "simulation only; on Spark use for example 'partial' or 'key'."
        )
    if made.coordinated:
        raise SkewlessError(
            f"Scheme '{made.spec}' remembers the worker of every key across sources, which Spark's "
            "tasks cannot share: use for example 'partial' or 'key'."
        )
    return made


def worker_count(df: DataFrame, workers: SupportsIndex | None) -> int:
    """The number of workers, or that of the partitions which Spark's own shuffles have."""
    if workers is not None:
        return check_worker_count(workers)
    found = df.sparkSession.conf.get(PARTITIONS, "")
    return int(found) if found and found.isdecimal() else USUAL_PARTITIONS


def check_worker_count(workers: SupportsIndex) -> int:
    """The number of workers as an int, whatever kind of whole number it is."""
    count = whole("The number of workers", workers)
    check_workers(count)
    return count


def make_plan(
    scheme: Scheme,
    workers: int,
    seed: int,
    plan: Arrays | None,
    learning: bool = False,
    capacities: F64 | None = None,
) -> Arrays:
    """The given plan, or the scheme's first one if it need not learn or is about to."""
    if plan is None and scheme.learns == "prefix" and not learning:
        raise SkewlessError(
            f"Scheme '{scheme.spec}' must learn a plan before it routes: pass the plan that "
            "skewless.spark.learn makes instead of it, or group a stream with checkpoint=."
        )
    first = scheme.plan(workers, check_seed(seed), capacities)
    if plan is None:
        return first
    if type(plan) is not type(first):
        raise SkewlessError(
            f"The plan is no plan of scheme '{scheme.spec}': hand over what learn gave for this "
            "scheme, or leave plan= out."
        )
    planned = _planned_workers(plan)
    if planned != workers:
        raise SkewlessError(
            f"The plan is for {planned} workers, not {workers}: learn it with as many workers as "
            "it shall route to."
        )
    return plan


def _planned_workers(plan: Any) -> int:
    """Plans say it, but for that of full-knowledge, which is nothing but a number per worker."""
    return int(plan.workers[0]) if "workers" in plan._fields else int(plan[0].size)


def check_plan_path(path: Any) -> None:
    """Refuse what is no path where a plan is written or read."""
    if not isinstance(path, str | os.PathLike):
        raise SkewlessError(f"A plan is kept in a file, of which this is not the path: {path!r}.")
