"""Random tables, settings and computations, each as plain Spark does it and as ours does it."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import balanced_map, group, repartition, route
from tests import sparks
from tests.spark.own_folds import Rows

# SQL of values of each type. Sums of the floats are exact in any order.
NUMBERS = ("0", "1", "-1", "7", "100")
VALUES = {
    "tinyint": ("127", "-128", *NUMBERS),
    "smallint": ("32767", "-32768", *NUMBERS),
    "int": ("2147483647", "-2147483648", *NUMBERS),
    "bigint": ("9223372036854775807", "-9223372036854775808", *NUMBERS),
    "float": ("'NaN'", "'Infinity'", "-0.0", "0.0", "1.5", "-2"),
    "double": ("'NaN'", "'-Infinity'", "-0.0D", "0.0", "1.5", "1e15"),
    "decimal(5,2)": ("999.99", "-999.99", "0", "1.05", "-0.01"),
    "decimal(20,0)": ("99999999999999999999", "5", "-5"),
    "decimal(30,10)": ("1.5", "-99999999999999999999", "0.0000000001"),
    "decimal(38,2)": ("'999999999999999999999999999999999999.99'", "1", "-1.01"),
    "decimal(38,0)": ("99999999999999999999999999999999999999", "-3", "3"),
    "boolean": ("true", "false"),
    "string": ("''", "'a'", "'A'", "'a '", "'é€😀'", "'null'", "'1:a'", "'x\ty'"),
    "binary": ("X''", "X'00'", "X'FFFE'", "X'61'"),
    "date": ("'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'2024-02-29'"),
    "timestamp": ("'2024-10-27 02:30:00'", "'0001-01-01'", "'9999-12-31'", "'1969-12-31 23:59'"),
    "timestamp_ntz": ("'2024-03-31 02:30:00'", "'0001-01-01'", "'2024-01-01 00:00:00.000001'"),
    "interval day to second": ("interval '1 02:03:04.5' day to second", "interval '0' second"),
    "interval day": ("interval '3' day", "interval '-3' day"),
    "interval year to month": ("interval '1-2' year to month", "interval '-1-0' year to month"),
    "interval year": ("interval '2' year", "interval '0' year"),
    "interval": ("make_interval(1, 2, 3, 4)", "make_interval(0, 14, 0, -3, 0, 0, 0.5)"),
    "string collate UTF8_LCASE": ("'a'", "'A'", "'b'"),
    "variant": ("parse_json('1')", "parse_json('[1]')"),
    "array<double>": ("array()", "array(0.0D, -0.0D)", "array(null)", "array(double('NaN'))"),
    "array<string>": ("array('a, b')", "array('a', 'b')", "array('')"),
    "struct<a:int,b:string>": (
        "named_struct('a', 1, 'b', '1')",
        "named_struct('a', null, 'b', '')",
    ),
    "struct<x:array<decimal(3,1)>>": ("named_struct('x', array(1.5))", "named_struct('x', null)"),
    "map<string,string>": ("map('x', '1', 'y', '2')", "map('y', '2', 'x', '1')", "map()"),
    "array<map<int,date>>": ("array(map(1, date'2024-01-01'))", "array(map())", "array()"),
    "void": ("null",),
}
NAMES = ("a", "b", "A", "x y", "p.q", "é", "k0", "v1", "identity", "worker", "count", "key")
NAMES += ("skewless_worker", "skewless_identity", "skewless_report", "*", "salt", "g0")
SCHEMES = ("key", "shuffle", "partial", "partial:choices=3", "modulo", "universal", "graded")
ONE_WORKER = ("key", "modulo", "universal")
ACTIONS = (*4 * ["fold"], "apply", "apply", "map", "route", "place")
if sparks.SPARK < (4, 0):
    # It has no applyInArrow to compare with, and nothing on which balanced_map could stand. It
    # groups by no maps, and cannot tell Python of intervals of the calendar.
    ACTIONS = tuple(action for action in ACTIONS if action not in ("apply", "map"))
    VALUES = {k: v for k, v in VALUES.items() if k != "interval" and "map<" not in k}
NUMERIC = ("int", "float", "double", "decimal")
SETTINGS = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York", "Asia/Kolkata"),
    "spark.sql.caseSensitive": ("false", "true"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("1000", "1", "3"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("false", "true"),
    # Compiling Java takes most of the time of so small a query: one of three does.
    "spark.sql.codegen.wholeStage": ("false", "false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "NO_CODEGEN", "FALLBACK"),
}
# What ours may refuse although Spark takes it: each is one sentence, and each has a reason.
REFUSALS = (
    "has the collation",
    "cannot fold column",
    "cannot be handed to Python",
    "of type variant cannot be a key",  # by which Spark groups neither
    "Two columns of the result would be called",
    "The key has two columns called",
    "[AMBIGUOUS_REFERENCE]",
    "columns called",
)


# What Spark fails at although ours does not: it groups by intervals of the calendar, which have no
# order, only with aggregates for which it need not sort.
FAILURES = ("Type PhysicalCalendarIntervalType does not support ordered operations",)


@dataclass(frozen=True)
class Case:
    """One computation on one table under some settings."""

    columns: tuple[tuple[str, str], ...]  # name, type
    rows: tuple[tuple[str, ...], ...]
    settings: tuple[tuple[str, str], ...]
    action: str
    key: tuple[int, ...]
    folded: tuple[tuple[str, int], ...]
    expressions: bool  # whether folds are given Columns or names
    scheme: str
    workers: int
    seed: int
    parts: int

    def table(self, spark: Any) -> Any:
        """The rows as a DataFrame, in some partitions."""
        cells = [
            [f"cast({value} as {kind})" for value, (_, kind) in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]
        plain = [f"c{i}" for i in range(len(self.columns))]
        lines = ", ".join(f"({', '.join(row)})" for row in cells)
        made = spark.sql(f"select * from values {lines} as t({', '.join(plain)})")
        return made.repartition(self.parts).toDF(*(name for name, _ in self.columns))


@st.composite
def cases(draw: Any) -> Case:
    count = draw(st.integers(1, 4))
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=count, max_size=count))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count))
    # Most computations refuse two columns of one name: now and then is enough.
    names = names if draw(st.integers(0, 9)) == 0 else list(draw(st.permutations(NAMES)))[:count]
    # Spark itself makes two groups of equal keys where an interval of the calendar is null.
    values = [
        st.sampled_from((*VALUES[kind], *(() if kind == "interval" else ("null",))))
        for kind in kinds
    ]
    rows = draw(st.lists(st.tuples(*values), min_size=1, max_size=12))
    places = st.integers(0, count - 1)
    foldable = [(how, i) for i, kind in enumerate(kinds) for how in hows(kind)]
    chosen = draw(st.lists(st.sampled_from([("count", 0), *foldable]), max_size=5, unique=True))
    action = draw(st.sampled_from(ACTIONS))
    return Case(
        columns=tuple(zip(names, kinds, strict=True)),
        rows=tuple(rows),
        settings=tuple((name, draw(st.sampled_from(SETTINGS[name]))) for name in SETTINGS),
        action=action,
        key=tuple(draw(st.lists(places, min_size=1, max_size=2, unique=True))),
        folded=tuple(chosen) or (("count", 0),),
        expressions=draw(st.booleans()),
        scheme=draw(st.sampled_from(ONE_WORKER if action == "apply" else SCHEMES)),
        workers=draw(st.integers(3, 5)),
        seed=draw(st.integers(0, 3)),
        parts=draw(st.integers(1, 3)),
    )


def hows(kind: str) -> tuple[str, ...]:
    """The folds that Spark has for a column of this type, among others that it has not."""
    if kind.startswith("interval"):
        return ("count", "min", "max")
    number = any(word in kind for word in NUMERIC) and "<" not in kind
    return ("count", "min", "max", "own") + (("sum", "mean") if number else ())


@contextmanager
def session(spark: Any, settings: tuple[tuple[str, str], ...]) -> Any:
    before = {name: spark.conf.get(name) for name, _ in settings}
    try:
        for name, value in settings:
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# What the driver's Python lacks, or has no room for: year 1 in New York begins in its year 0.
AS_TEXT = ("interval", "variant", "timestamp")


def shown(frame: Any) -> tuple[list[str], list[str]]:
    """The types, and the rows as text, in one order."""
    types = [f"{f.name} {f.dataType.simpleString()}" for f in frame.schema.fields]
    plain = frame.toDF(*(f"c{i}" for i in range(len(types))))
    columns = [
        F.col(f"c{i}").cast("string") if any(odd in kind for odd in AS_TEXT) else F.col(f"c{i}")
        for i, kind in enumerate(types)
    ]
    return types, sorted(
        repr([canonical(v) for v in row]) for row in plain.select(*columns).collect()
    )


def canonical(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return sorted((repr(canonical(k)), canonical(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return [canonical(part) for part in value]
    return bytes(value) if isinstance(value, bytearray) else value


PLAIN = {"count": F.count, "min": F.min, "max": F.max, "sum": F.sum, "mean": F.avg}


def as_spark(case: Case, spark: Any) -> Any:
    """The computation as Spark does it, by place: not all of it takes all names."""
    df = case.table(spark)
    if case.action in ("map", "place"):
        return shown(df)
    df = df.toDF(*(f"c{i}" for i in range(len(case.columns))))
    grouped = df.groupBy(*(f"c{i}" for i in case.key))
    if case.action == "fold":
        aggregates = []
        for how, i in case.folded:
            made = F.count(F.lit(1)) if how == "own" else PLAIN[how](f"c{i}")
            aggregates.append(made)
        names = [case.columns[i][0] for i in case.key] + [f"r{i}" for i in range(len(aggregates))]
        return shown(grouped.agg(*aggregates).toDF(*names))
    if case.action == "apply":
        if any("map" in case.columns[i][1] for i in case.key):
            # Its applyInArrow tells maps apart by the order of their entries, its agg does not.
            return shown(grouped.agg(F.count(F.lit(1)).alias("n")).select("n"))
        return shown(grouped.applyInArrow(size_of, "n long"))
    return shown(
        grouped.agg(F.count(F.lit(1)).alias("n"), F.lit(1).alias("workers")).select("n", "workers")
    )


def as_ours(case: Case, spark: Any) -> Any:
    df = case.table(spark)
    keys = [quoted(case.columns[i][0]) for i in case.key]
    way: Any = (case.scheme, case.workers)
    if case.action == "fold":
        made = []
        for number, (how, i) in enumerate(case.folded):
            column = quoted(case.columns[i][0])
            given = F.col(column) if case.expressions else column
            fold = Rows(column) if how == "own" else getattr(folds, how)(given)
            made.append(fold.alias(f"r{number}"))
        return shown(group(df, keys, *way, seed=case.seed).fold(*made))
    if case.action == "apply":
        return shown(group(df, keys, *way, seed=case.seed).apply(size_of, "n long"))
    if case.action == "map":
        way = {"key": keys, "workers": case.workers, "seed": case.seed}
        with balanced_map(df, as_it_is, df.schema, **way, share=0.5) as mapped:
            return shown(mapped)
    if case.action == "place":
        return shown(repartition(df, keys, *way, seed=case.seed))
    one = case.scheme if case.scheme in ONE_WORKER else "key"
    routed = route(df, keys, one, case.workers, seed=case.seed, column="which one")
    groups = routed.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("n"), F.count_distinct("which one").cast("int").alias("workers")
    )
    return shown(groups.select("n", "workers"))


def size_of(table: pa.Table) -> pa.Table:
    return pa.table({"n": pa.array([table.num_rows], pa.int64())})


def as_it_is(batches: Any) -> Any:
    yield from batches


def difference(case: Case, spark: Any, seen: Counter[str]) -> str | None:
    """What ours does otherwise than Spark, or None; counts actions whose rows were compared."""
    with session(spark, case.settings):
        plain, ours = outcome(as_spark, case, spark), outcome(as_ours, case, spark)
    if isinstance(plain, Exception):
        if isinstance(ours, Exception):
            return None if alike(plain, ours) else f"Spark raises {plain!r}, ours {ours!r}"
        if any(failure in str(plain) for failure in FAILURES):
            return None
        return f"Spark raises {str(plain)[:300]}, ours gives {ours}"
    if isinstance(ours, Exception):
        said = str(ours)
        if "SkewlessError" in f"{type(ours).__name__} {said}" and any(r in said for r in REFUSALS):
            return None
        return f"Spark gives {plain}, ours raises {type(ours).__name__}: {said[-1500:]}"
    seen[case.action] += 1
    return None if plain == ours else f"Spark gives {plain}, ours {ours}"


def alike(plain: Exception, ours: Exception) -> bool:
    """Whether ours is one sentence, or the very error that Spark raises."""
    if isinstance(ours, SkewlessError) or "SkewlessError" in str(ours):
        return True
    known = condition(plain)
    if known is None:
        return type(ours) is type(plain) and str(ours) == str(plain)
    return condition(ours) == known or known in str(ours)


def condition(error: Exception) -> str | None:
    """What Spark calls this error."""
    for name in ("getCondition", "getErrorClass"):
        if hasattr(error, name):
            return getattr(error, name)()
    return None


def outcome(run: Any, case: Case, spark: Any) -> Any:
    try:
        return run(case, spark)
    except Exception as error:
        return error
