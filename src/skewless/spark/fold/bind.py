"""Folds bound to the columns of a DataFrame: what travels, and under which internal names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from skewless.errors import SkewlessError
from skewless.folds import Fold, NativeMerge
from skewless.folds.worker import FoldJob
from skewless.spark.adapt.facts import StateFacts
from skewless.spark.fold.values import Value, values_of
from skewless.spark.input.checks import name_rule
from skewless.spark.input.keys import Keys
from skewless.spark.input.types import arrow_type, taken_type
from skewless.spark.input.version import JAVA_WITH_SHORTEST_FLOATS, java_of, spark_type_of
from skewless.spark.input.wire import check_collation, leaves


@dataclass(frozen=True)
class BoundFolds:
    """A job for the workers, and the same for Spark.

    values: the input columns that travel
    partial_schema, result_schema: the flat keys under internal names, then partials or results
    natives: how Spark itself merges each fold's partials, or None if one of them needs Python
    facts: what gives the partials their meaning
    """

    job: FoldJob
    keys: Keys
    values: tuple[Value, ...]
    partial_schema: StructType
    result_schema: StructType
    natives: tuple[NativeMerge, ...] | None
    facts: StateFacts

    @property
    def tells_workers_apart(self) -> bool:
        """Does a fold do something else on another worker?"""
        return any(type(fold).on_worker is not Fold.on_worker for fold in self.job.folds)

    def partial_names(self) -> list[list[str]]:
        """The names of each fold's partial columns."""
        names = [f"p{i}" for i in range(sum(self.job.partial_counts))]
        ends = [sum(self.job.partial_counts[: i + 1]) for i in range(len(self.job.folds))]
        counts = self.job.partial_counts
        return [names[end - count : end] for end, count in zip(ends, counts, strict=True)]


def bind(
    df: DataFrame, key: Keys, folds: Sequence[Fold], most_keys: int, most_bytes: int
) -> BoundFolds:
    """Bind folds to a DataFrame; every mistake is one sentence, and no job starts."""
    _check_folds(folds)
    ansi = str(df.sparkSession.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"
    values, places = values_of(df, folds)
    mine = [[values[place] for place in taken] for taken in places]
    facts = [
        fold.over([v.text for v in own]).describe([v.kind.simpleString() for v in own])
        for fold, own in zip(folds, mine, strict=True)
    ]
    folds = [
        fold.over([value.name for value in own]).with_overflow(raises=ansi)
        for fold, own in zip(folds, mine, strict=True)
    ]
    _check_names(folds, key.fields, name_rule(df))
    for fold, own in zip(folds, mine, strict=True):
        for value in own if fold.compares else ():
            check_collation(value.name, value.kind)
    kinds = [arrow_type(value.name, value.kind) for value in values]
    types = [[kinds[place] for place in taken] for taken in places]
    pairs = list(zip(folds, types, strict=True))
    partials = [fold.partial_types(kind) for fold, kind in pairs]
    results = [taken_type(f.name, f.result_type(kind)) for f, kind in pairs]
    natives = [fold.native(kind) for fold, kind in pairs]

    inner, keys = key.names(), key.flat_fields()
    key_arrow = [(n, arrow_type(f.name, f.dataType)) for n, f in zip(inner, keys, strict=True)]
    flat = [(f"p{i}", kind) for i, kind in enumerate(k for kinds in partials for k in kinds)]
    owners = [own for own, kinds_of in zip(mine, partials, strict=True) for _ in kinds_of]
    named = [(f"r{i}", kind) for i, kind in enumerate(results)]
    job = FoldJob(
        keys=len(keys),
        folds=tuple(folds),
        inputs=tuple(tuple(len(keys) + place for place in taken) for taken in places),
        partial_schema=pa.schema(key_arrow + flat),
        partial_counts=tuple(len(kinds) for kinds in partials),
        result_schema=pa.schema(key_arrow + named),
        most_keys=most_keys,
        most_bytes=most_bytes,
    )
    inner_keys = [StructField(n, f.dataType) for n, f in zip(inner, keys, strict=True)]
    return BoundFolds(
        job,
        key,
        tuple(values),
        StructType(inner_keys + _spark_fields(flat, owners)),
        StructType(inner_keys + _spark_fields(named, mine)),
        tuple(n for n in natives if n) if all(natives) else None,
        StateFacts(
            tuple(f"{f.name} {f.dataType.simpleString()}" for f in key.fields)
            + (() if all(natives) else _way_of_floats(df, key)),
            tuple(facts),
        ),
    )


def _way_of_floats(df: DataFrame, key: Keys) -> tuple[str, ...]:
    """How floats in the key are written: state that Python merges is kept by the key's text."""
    kinds = [leaf for field in key.fields for leaf in leaves(field.dataType)]
    if not df.isStreaming or not any(isinstance(kind, FloatType | DoubleType) for kind in kinds):
        return ()
    new = java_of(df.sparkSession) >= JAVA_WITH_SHORTEST_FLOATS
    return ("floats as Java 19 and later write them",) if new else ()


def _spark_fields(
    fields: Sequence[tuple[str, pa.DataType]], owners: Sequence[Sequence[Value]]
) -> list[StructField]:
    """The Spark types of a fold's columns: that of a column it folds, if it is the same to Arrow.

    Arrow knows fewer: to it an interval of days is one of days and seconds.
    """
    found = []
    for (name, kind), own in zip(fields, owners, strict=True):
        same = [value.kind for value in own if arrow_type(value.name, value.kind) == kind]
        found.append(StructField(name, same[0] if same else spark_type_of(kind)))
    return found


def _check_folds(folds: Sequence[Fold]) -> None:
    if not folds:
        raise SkewlessError("fold() needs at least one fold, such as skewless.folds.count().")
    for fold in folds:
        if not isinstance(fold, Fold):
            raise SkewlessError(
                f"{fold!r} is not a fold: use skewless.folds.count(), sum(...), … "
                "or an object of your own subclass of skewless.folds.PerKeyFold."
            )
        if not isinstance(getattr(fold, "name", None), str) or not fold.name:
            raise SkewlessError(
                f"A fold of class {type(fold).__name__} has no name: give its class a `name`, "
                "which its column in the result will have."
            )
        if isinstance(fold.columns, str) or not all(isinstance(c, str) for c in fold.columns):
            raise SkewlessError(
                f"The columns of fold '{fold.name}' are a tuple of names, such as (\"x\",), not "
                f"{fold.columns!r}."
            )


def _check_names(
    folds: Sequence[Fold], keys: Sequence[StructField], same: Callable[[str], str]
) -> None:
    in_key = [same(field.name) for field in keys]
    for name in in_key:
        if in_key.count(name) > 1:
            raise SkewlessError(
                f"The key has two columns called '{name}': name it once, or rename one of them "
                "with .alias(...)."
            )
    names = in_key + [same(fold.name) for fold in folds]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SkewlessError(
            f"Two columns of the result would be called '{twice[0]}': "
            "rename a fold with .alias(...)."
        )
