"""The join itself: a slot for every row as a Column expression, then Spark's own join on it too.

    left:  entry of the key in the plan → stripe by the salt → the cells of that stripe
    right: the same with the grid turned
    join on (key, slot), drop what only cells without a partner gave, drop the slot

Hot keys are found in a table of literals, and `explode` makes copies only on a side that has some.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.checks import column_named
from skewless.spark.input.version import unlogged
from skewless.spark.join.entries import entry_of
from skewless.spark.join.keys import JoinKeys, Side
from skewless.spark.join.plan import I32, I64, JoinPlan
from skewless.spark.routing.columns import literal_array

_PREFIX = "__skewless_"


class _Half(NamedTuple):
    """The grid as one side sees it."""

    own: I64  # [k] stripes
    copies: I64  # [k] cells of a stripe
    slots: list[I32]  # [k] stripe by stripe
    nulls: I32


class _Names(NamedTuple):
    """Columns of ours, called as no column of either side is."""

    slot: str
    other_slot: str
    entry: str
    left_copied: str
    right_copied: str
    left_key: str
    right_key: str


def plain_join(left: DataFrame, right: DataFrame, keys: JoinKeys, how: str) -> DataFrame:
    """Spark's own join."""
    if keys.using is not None:
        return left.join(right, list(keys.using), how)
    return _join_pairs(left, right, keys, how, _names(left, right), slots=False)


def spread_join(
    left: DataFrame,
    right: DataFrame,
    keys: JoinKeys,
    how: str,
    plan: JoinPlan,
    salts: tuple[Column | None, Column | None],
    repartition: bool,
) -> DataFrame:
    """The same rows as Spark's own join, with hot keys in cells.

    repartition: fix the number of partitions to the plan's; else Spark chooses as it does
    """
    names = _names(left, right)
    if plan.distinct:
        right = _distinct(right, keys, names)
        keys = keys if keys.using is not None else _of_copies(keys, names)
    grids = [s.reshape(a, b) for s, a, b in zip(plan.slots, *_stripes(plan), strict=True)]
    row_wise = [g.ravel() for g in grids]
    column_wise = [g.T.ravel() for g in grids]
    a, b = _stripes(plan)
    halves = (
        _Half(a, b, row_wise, plan.null_slots_left),
        _Half(b, a, column_wise, plan.null_slots_right),
    )
    # A copy without a partner is one of several, and its row has one elsewhere: it must go.
    drops_left = plan.kind.keeps_left and bool((b > 1).any())
    drops_right = plan.kind.keeps_right and bool((a > 1).any())
    marks = drops_left or drops_right
    spread = []
    for df, side, half, salt, slot, mark in (
        (left, keys.left, halves[0], salts[0], names.slot, names.left_copied),
        (right, keys.right, halves[1], salts[1], _right_slot(keys, names), names.right_copied),
    ):
        rows = _spread(df, side, half, plan, salt, slot, names.entry, mark if marks else None)
        spread.append(
            rows.repartition(plan.partitions, *side.values, slot) if repartition else rows
        )
    if keys.using is not None:
        joined = spread[0].join(spread[1], [*keys.using, names.slot], how)
    else:
        joined = _join_pairs(spread[0], spread[1], keys, how, names, slots=True)
    if marks:
        on_left, on_right = F.col(names.left_copied), F.col(names.right_copied)
        alone_left = F.coalesce(on_left, F.lit(False)) & on_right.isNull()
        alone_right = F.coalesce(on_right, F.lit(False)) & on_left.isNull()
        joined = joined.where(~(alone_left | alone_right))
        joined = joined.drop(names.left_copied, names.right_copied)
    return joined.drop(names.slot, names.other_slot)


def _stripes(plan: JoinPlan) -> tuple[I64, I64]:
    return plan.stripes_left, plan.stripes_right


def _right_slot(keys: JoinKeys, names: _Names) -> str:
    return names.slot if keys.using is not None else names.other_slot


def _spread(
    df: DataFrame,
    side: Side,
    half: _Half,
    plan: JoinPlan,
    salt: Column | None,
    slot: str,
    entry: str,
    mark: str | None,
) -> DataFrame:
    """The rows with their slots, copied into all cells of their stripe.

    mark: the name of a column that says whether a row was copied
    """
    sizes = plan.sizes
    flat = np.concatenate([np.zeros(1, np.int32), *half.slots, half.nulls]).astype(np.int32)
    starts = 1 + np.concatenate([[0], np.cumsum([s.size for s in half.slots])]).astype(np.int64)
    salt = F.lit(0).cast("long") if salt is None else salt
    # Always 0, which Spark must not know: it would take a constant for no key of the join at all.
    at, copies = F.pmod(F.hash(side.values[0]), F.lit(1)), F.lit(1)
    if sizes.identities.size:
        df = df.withColumn(entry, entry_of(side.values, sizes.identities, sizes.hashes))
        e = F.col(entry)
        own, count = (F.get(literal_array(v, "int"), e) for v in (half.own, half.copies))
        begin = F.get(literal_array(starts[:-1], "int"), e)
        stripe = begin if (half.own == 1).all() else begin + F.pmod(salt, own).cast("int") * count
        at, copies = F.when(e >= 0, stripe).otherwise(at), F.when(e >= 0, count).otherwise(copies)
    if half.nulls.size:
        chosen = F.lit(int(starts[-1])) + F.pmod(salt, F.lit(half.nulls.size)).cast("int")
        null = reduce(or_, (value.isNull() for value in side.values))
        at, copies = F.when(null, chosen).otherwise(at), F.when(null, F.lit(1)).otherwise(copies)
    slots = literal_array(flat, "int")
    if mark is not None:
        df = df.withColumn(mark, F.coalesce(copies > 1, F.lit(False)))
    if (half.copies > 1).any():
        df = df.withColumn(slot, F.explode(F.slice(slots, at + 1, copies)))
    else:
        # Never null to Spark, or it would look every slot up twice to filter nulls out early.
        df = df.withColumn(slot, F.coalesce(F.get(slots, at), F.lit(0)))
    return df.drop(entry)


def _join_pairs(
    left: DataFrame, right: DataFrame, keys: JoinKeys, how: str, names: _Names, slots: bool
) -> DataFrame:
    """A join on pairs of columns, which keeps the columns of both sides."""
    besides = [F.col(names.slot) == F.col(names.other_slot)] if slots else []
    besides += keys.conditions
    pairs = [(a, b) for a, b in zip(keys.left.names, keys.right.names, strict=True) if a and b]
    if len(pairs) == len(keys.types) and _notices_self_joins(left):
        try:
            equal = [left[_quoted(a)] == right[_quoted(b)] for a, b in pairs]
            with unlogged():
                joined = left.join(right, reduce(and_, [*equal, *besides]), how)
                _ = joined.schema  # Spark Connect analyses no sooner
            return joined
        except AnalysisException:
            pass  # both sides are of one DataFrame: only names of our own tell their columns apart
    copies = []
    for df, side, name in ((left, keys.left, names.left_key), (right, keys.right, names.right_key)):
        columns = {f"{name}{i}": value for i, value in enumerate(side.values)}
        copies.append(df.withColumns(columns))
    count = len(keys.types)
    equal = [F.col(f"{names.left_key}{i}") == F.col(f"{names.right_key}{i}") for i in range(count)]
    joined = copies[0].join(copies[1], reduce(and_, [*equal, *besides]), how)
    ours = [f"{name}{i}" for name in (names.left_key, names.right_key) for i in range(count)]
    return joined.drop(*ours)


def _notices_self_joins(df: DataFrame) -> bool:
    """Whether Spark refuses columns that could be of either side, instead of guessing."""
    settings = (
        "spark.sql.analyzer.failAmbiguousSelfJoin",
        "spark.sql.selfJoinAutoResolveAmbiguity",
    )
    return all(str(df.sparkSession.conf.get(s, "true")).lower() == "true" for s in settings)


def _distinct(right: DataFrame, keys: JoinKeys, names: _Names) -> DataFrame:
    """The distinct keys of the right, which is all that a semi or anti join asks of it."""
    if keys.using is not None:
        return right.select(*map(column_named, keys.using)).distinct()
    values = enumerate(keys.right.values)
    return right.select(*(v.alias(f"{names.right_key}_{i}") for i, v in values)).distinct()


def _of_copies(keys: JoinKeys, names: _Names) -> JoinKeys:
    copies = tuple(f"{names.right_key}_{i}" for i in range(len(keys.types)))
    right = Side(tuple(map(F.col, copies)), copies, keys.right.words)
    return replace(keys, right=right)


def _names(left: DataFrame, right: DataFrame) -> _Names:
    taken = {name.lower() for name in (*left.columns, *right.columns)}
    prefix = _PREFIX
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return _Names(*(f"{prefix}{name}" for name in _Names._fields))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
