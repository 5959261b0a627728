"""What `on` means: which columns of the two sides must be equal, and as values of which type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from skewless.errors import SkewlessError, unknown
from skewless.spark.input.checks import check_of_one_row, column_named, free_name
from skewless.spark.input.version import collation_of, is_variant, unlogged

On = str | Sequence[str] | Sequence[tuple[str | Column, str | Column] | Column]
_NUMBERS = (IntegralType, FractionalType)
_TIMES = (DateType, TimestampType, TimestampNTZType)
_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps it of texts that are char or varchar


@dataclass(frozen=True)
class Side:
    """The key of one side."""

    values: tuple[Column, ...]  # of the type by which Spark compares them
    names: tuple[str | None, ...]  # of the columns they are; None for an expression
    words: tuple[str, ...]  # for people


@dataclass(frozen=True)
class JoinKeys:
    """The columns of a join; made by `join_keys`."""

    left: Side
    right: Side
    types: tuple[str, ...]
    using: tuple[str, ...] | None  # the names, if the join shows each key column once
    conditions: tuple[Column, ...]  # what must hold besides
    plain: str  # why the keys of this join cannot be spread; "" if they can
    floating: bool  # Spark hashes floating-point keys after making −0.0 and NaN alike
    nested: bool  # Spark hashes structs and arrays without their nulls: different ones may be alike

    @property
    def pairs(self) -> list[list[str]]:
        """The key in words: a list of [left, right]."""
        return [[a, b] for a, b in zip(self.left.words, self.right.words, strict=True)]


def join_keys(left: DataFrame, right: DataFrame, on: On) -> JoinKeys:
    """The key columns, checked by analysis alone."""
    using, pairs, conditions = _parts(on)
    sides = []
    for df, place, which in ((left, 0, "left"), (right, 1, "right")):
        given = [pair[place] for pair in pairs]
        sides.append([_column(df, part, which, literal=using is not None) for part in given])
    types, casts, plain = [], [], ""
    for (a, a_name, a_field, a_words), (b, b_name, b_field, b_words) in zip(*sides, strict=True):
        a_type, b_type = a_field.dataType, b_field.dataType
        common, why = _common(left, a_type, b_type, a_words, b_words)
        plain = plain or why or _why_padded(left, a_field, b_field, a_words, b_words)
        types.append(common)
        casts.append(
            (_as(a, a_type, common), a_name, a_words, _as(b, b_type, common), b_name, b_words)
        )
    columns = list(zip(*casts, strict=True))
    return JoinKeys(
        Side(*columns[:3]),
        Side(*columns[3:]),
        tuple(kind.simpleString() for kind in types),
        tuple(using) if using is not None else None,
        tuple(conditions),
        plain,
        any(map(_has_floats, types)),
        any(map(_inner, types)),
    )


def _parts(on: Any) -> tuple[list[str] | None, list[tuple[Any, Any]], list[Column]]:
    """Names that both sides have or None, pairs of columns, further conditions."""
    parts = list(on) if isinstance(on, list) else [on]
    if parts and all(isinstance(part, str) for part in parts):
        if len(set(parts)) < len(parts):
            raise SkewlessError(f"The columns to join on repeat themselves: {', '.join(parts)}.")
        return parts, [(name, name) for name in parts], []
    pairs = [part for part in parts if isinstance(part, tuple)]
    conditions = [part for part in parts if isinstance(part, Column)]
    # A lone tuple could be meant as a pair or as two names.
    odd = isinstance(on, tuple) or not parts or len(pairs) + len(conditions) < len(parts)
    if odd or any(not _is_pair(pair) for pair in pairs):
        raise SkewlessError(
            "A join is on a column's name, a list of names, or a list of pairs (left column, right "
            f"column) with further conditions as Columns after them, not {on!r}."
        )
    if not pairs:
        raise SkewlessError(
            "A condition made of Columns does not show which columns must be equal: give these as "
            'pairs, for example on=[("a", "b")] for left.a == right.b, with any further conditions '
            "as Columns after them; null-safe equality and joins without equality stay with "
            "Spark's own join."
        )
    return None, pairs, conditions


def _is_pair(pair: tuple[Any, ...]) -> bool:
    return len(pair) == 2 and all(isinstance(part, str | Column) for part in pair)


def _column(
    df: DataFrame, part: str | Column, which: str, literal: bool
) -> tuple[Column, str | None, StructField, str]:
    """The column, its name unless it is an expression, its field, and words for it.

    literal: a name with dots is that of a column, never of a field
    """
    if isinstance(part, str):
        column, name = column_named(part), part
        try:
            with unlogged():
                return column, name, df.select(column).schema.fields[0], part
        except AnalysisException as error:
            if "AMBIGUOUS" in str(error):
                raise SkewlessError(
                    f"The {which} side has several columns '{part}': rename them first."
                ) from None
    try:
        column = F.col(part) if isinstance(part, str) else part
        if literal:
            raise SkewlessError("")
        with unlogged():
            fields = df.select(column).schema.fields
    except (AnalysisException, SkewlessError) as error:
        if isinstance(part, str):
            raise unknown(f"column of the {which} side", part, df.columns) from None
        raise SkewlessError(
            f"The key {part} cannot be computed from the columns {', '.join(df.columns)} of the "
            f"{which} side: {str(error).splitlines()[0]}"
        ) from None
    if len(fields) != 1 or (isinstance(part, str) and part.endswith("*")):
        raise SkewlessError(
            f"The key '{part}' of the {which} side is not one column: give a pair for each column "
            "of it."
        )
    if isinstance(part, Column):
        _check_expression(df, part, which)
    return column, None, fields[0], part if isinstance(part, str) else fields[0].name


def _check_expression(df: DataFrame, part: Column, which: str) -> None:
    """Refuse what Spark takes into no condition of a join."""
    check_of_one_row(df, part, "key")
    refused = refused_condition(df, part)
    if "NON_DETERMINISTIC" in refused:
        raise SkewlessError(
            f"The key {part} is not the same when it is computed again: give an expression of the "
            f"{which} side's own columns, or make it a column first."
        )
    if refused:
        raise SkewlessError(
            f"Spark takes the key {part} into no join: {refused.splitlines()[0]} Make it a column "
            f"of the {which} side first."
        )


def refused_condition(df: DataFrame, column: Column) -> str:
    """What Spark says against a column in a join's condition, or ""; it takes no random one."""
    one = df.sparkSession.range(1).toDF(free_name(df.columns, "one"))
    try:
        with unlogged():
            _ = df.join(one, F.isnull(column)).schema
    except AnalysisException as error:
        return str(error)
    return ""


def _common(
    df: DataFrame, a: DataType, b: DataType, a_words: str, b_words: str
) -> tuple[DataType, str]:
    """The type by which Spark compares the two, and why such keys cannot be spread or ""."""
    for kind, words in ((a, a_words), (b, b_words)):
        if isinstance(kind, MapType) or is_variant(kind):
            raise SkewlessError(
                f"Column '{words}' of type {kind.simpleString()} cannot be a key: Spark compares "
                "no such values; take fields out of it first."
            )
    why = _why_not(a, a_words) or _why_not(b, b_words)
    if a.simpleString() == b.simpleString():
        return a, why
    empty = df.sparkSession.range(0).select(
        F.lit(None).cast(a).alias("a"), F.lit(None).cast(b).alias("b")
    )
    try:
        with unlogged():
            _ = empty.select(F.col("a") == F.col("b")).schema
    except AnalysisException:
        raise SkewlessError(
            f"The keys '{a_words}' of type {a.simpleString()} and '{b_words}' of type "
            f"{b.simpleString()} do not compare: cast one of them."
        ) from None
    if isinstance(a, FloatType) or isinstance(b, FloatType):
        # Of a float that was made of a whole number Spark forgets the float, which had rounded it,
        # where it is cast once more, but not where a join compares it.
        return a, (
            f"the keys '{a_words}' of type {a.simpleString()} and '{b_words}' of type "
            f"{b.simpleString()} are compared as doubles, of which Spark may skip the rounding to "
            "float; cast one of them to the type of the other"
        )
    alike = any(isinstance(a, kinds) and isinstance(b, kinds) for kinds in (_NUMBERS, _TIMES))
    if not alike:
        return a, (
            f"the keys '{a_words}' of type {a.simpleString()} and '{b_words}' of type "
            f"{b.simpleString()} are compared by a rule of Spark's own; cast one of them"
        )
    return empty.select(F.coalesce("a", "b").alias("c")).schema["c"].dataType, why


def _why_padded(df: DataFrame, a: StructField, b: StructField, a_words: str, b_words: str) -> str:
    """Why Spark may take texts for equal that end in more blanks or fewer, or ""."""
    declared = [str(field.metadata.get(_DECLARED, "")) for field in (a, b)]
    if not all(re.search(r"\bchar\(", words) for words in declared):
        return ""
    padded = str(df.sparkSession.conf.get("spark.sql.readSideCharPadding", "true")).lower()
    if declared[0] == declared[1] and padded == "true":
        return ""
    return (
        f"the keys '{a_words}' of type {declared[0]} and '{b_words}' of type {declared[1]} are "
        "filled up with blanks to one length to be compared; cut the blanks off both with rtrim"
    )


def _why_not(kind: DataType, words: str) -> str:
    if isinstance(kind, StringType) and collation_of(kind) != "UTF8_BINARY":
        return (
            f"column '{words}' has the collation {collation_of(kind)}, by which different texts "
            "are equal"
        )
    inner = _inner(kind)
    return next(filter(None, (_why_not(part, words) for part in inner)), "")


def _inner(kind: DataType) -> list[DataType]:
    if isinstance(kind, StructType):
        return [field.dataType for field in kind.fields]
    return [kind.elementType] if isinstance(kind, ArrayType) else []


def _has_floats(kind: DataType) -> bool:
    if isinstance(kind, FractionalType) and not isinstance(kind, DecimalType):
        return True
    return any(map(_has_floats, _inner(kind)))


def _as(column: Column, given: DataType, common: DataType) -> Column:
    same = given.simpleString() == common.simpleString()
    return column if same else column.cast(common)
