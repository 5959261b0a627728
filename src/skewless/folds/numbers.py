"""Count, sum and mean, with the types and null rules of Spark's own aggregates."""

from __future__ import annotations

import copy
import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.folds.api import Fold, NativeMerge, refuse
from skewless.folds.expression import check_column
from skewless.folds.groups import I64, Groups, aggregate, valid_rows

_MOST_DIGITS = 38
_MOST_DIGITS_DIVIDED = 24  # sums of more would not fit the 34 digits that `_quotient` divides
_LOW = np.int64(0xFFFFFFFF)
_LARGEST_LONG = 2**63 - 1
_NUMBERS = "whole numbers, floats or decimals"


@compiled
def _add(ids: I64, values: I64, sums: I64) -> None:
    for i in range(ids.size):
        sums[ids[i]] += values[i]


def sum_longs(groups: Groups, values: I64) -> I64:
    """The sum of each group's values."""
    sums = np.zeros(groups.size, np.int64)
    _add(groups.ids, values, sums)
    return sums


class Count(Fold):
    """How many messages, or how many that are not null in a column."""

    def __init__(self, column: Any = None) -> None:
        self.name = "count"
        if column is not None:
            self.columns = (check_column("count", column),)
            self.name = f"count({self.columns[0]})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """One long."""
        return [pa.int64()]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A long."""
        return pa.int64()

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Count rows."""
        ids = groups.ids[valid_rows(columns[0])] if columns else groups.ids
        return [pa.array(np.bincount(ids, minlength=groups.size).astype(np.int64))]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Counts add up."""
        return [pa.array(sum_longs(groups, partials[0].to_numpy()))]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """The count itself."""
        return partials[0]

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge:
        """Spark's sum."""
        return NativeMerge(("sum({0})",), "{0}")


class _Summing(Fold):
    """What sum and mean have in common: a column of numbers, and what becomes of an overflow."""

    _fold: str
    overflow_raises: bool = True

    def __init__(self, column: Any) -> None:
        self.columns = (check_column(self._fold, column),)
        self.name = f"{self._fold}({self.columns[0]})"

    def with_overflow(self, raises: bool) -> Fold:
        """The same, raising or not."""
        other = copy.copy(self)
        other.overflow_raises = raises
        return other

    def overflow(self, what: str) -> SkewlessError:
        """The error for a result that does not fit."""
        return SkewlessError(
            f"[ARITHMETIC_OVERFLOW] {self.name} overflows {what}: cast its column to a wider type "
            "or to a double first, or set spark.sql.ansi.enabled to false, as for Spark's own."
        )


class Sum(_Summing):
    """The sum of a column: a long for whole numbers, a double for floats, else a wider decimal.

    A long is summed in two halves, the low one signed, so that no order of messages overflows on
    the way: the result overflows exactly when the total does. A decimal is summed beside a count of
    the parts that exceeded 38 digits. Of an overflow Spark's ANSI setting says what happens.
    """

    _fold = "sum"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """High and low half of a long, one double, or a decimal and the overflows."""
        kind = types[0]
        if pa.types.is_integer(kind):
            return [pa.int64(), pa.int64()]
        return _sum_types("sum", self.columns[0], kind)

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """Long, double, or a decimal of ten more digits."""
        if pa.types.is_integer(types[0]):
            return pa.int64()
        return _sum_type("sum", self.columns[0], types[0], 10)

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Sum the values that are not null; null if there is none."""
        values = columns[0]
        if pa.types.is_integer(values.type):
            filled = pc.fill_null(values, 0).cast(pa.int64()).to_numpy()
            empty = np.bincount(groups.ids[valid_rows(values)], minlength=groups.size) == 0
            # Signed, so that small negative numbers have small low halves, and many of them too.
            low = (filled << 32) >> 32
            high = (filled >> 32) + ((filled >> 31) & 1)
            return [pa.array(sum_longs(groups, half), mask=empty) for half in (high, low)]
        return _sums(groups, values, None)

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Partial sums add up."""
        if not pa.types.is_integer(partials[0].type):
            return _sums(groups, partials[0], partials[1] if len(partials) > 1 else None)
        empty = np.bincount(groups.ids[valid_rows(partials[0])], minlength=groups.size) == 0
        return [
            pa.array(sum_longs(groups, pc.fill_null(half, 0).to_numpy()), mask=empty)
            for half in partials
        ]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Join the halves."""
        if pa.types.is_decimal(partials[0].type):
            return self._fitting(*partials)
        if len(partials) == 1:
            return partials[0]
        high, low = partials
        carried = pc.add(high, pc.shift_right(low, 32))
        rest = pc.bit_wise_and(low, int(_LOW))
        if not self.overflow_raises:
            return pc.add(pc.multiply(carried, 1 << 32), rest)
        try:
            return pc.add_checked(pc.multiply_checked(carried, 1 << 32), rest)
        except pa.ArrowInvalid:
            raise self.overflow("a long") from None

    def _fitting(self, sums: pa.Array, overflows: pa.Array) -> pa.Array:
        over = pc.greater(overflows, 0)
        if self.overflow_raises and pc.any(over).as_py():
            raise self.overflow(f"the {_MOST_DIGITS} digits of a decimal")
        return pc.if_else(over, pa.scalar(None, sums.type), sums)

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge:
        """Spark's sum of each half."""
        if pa.types.is_integer(types[0]):
            return NativeMerge(
                ("sum({0})", "sum({1})"),
                "({0} + shiftright({1}, 32)) * 4294967296L + ({1} & 4294967295L)",
            )
        kind = _sql(self.result_type(types))
        if not pa.types.is_decimal(types[0]):
            return NativeMerge(("sum({0})",), f"cast({{0}} as {kind})")
        # As the session has it: the long overflows, with the error of Spark's own sum, or it wraps,
        # and a number that fits no decimal is null.
        over = f"cast(({{1}} + {_LARGEST_LONG}L) * 1e38D as {kind})"
        fitting = f"if({{1}} > 0, {over}, cast({{0}} as {kind}))"
        return NativeMerge(("sum({0})", "sum({1})"), fitting)


class Mean(_Summing):
    """The mean of a column: a double, or for decimals a decimal of four more places."""

    _fold = "mean"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """A count and a sum."""
        return [pa.int64(), *_sum_types("mean", self.columns[0], types[0])]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A double, or a decimal of four more digits and places."""
        kind = types[0]
        if not pa.types.is_decimal(kind):
            return pa.float64()
        return pa.decimal128(
            min(_MOST_DIGITS, kind.precision + 4), min(_MOST_DIGITS, kind.scale + 4)
        )

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Count and sum the values that are not null."""
        counts = np.bincount(groups.ids[valid_rows(columns[0])], minlength=groups.size)
        return [pa.array(counts.astype(np.int64)), *_sums(groups, columns[0], None)]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Counts and sums add up."""
        counts, sums, *overflows = partials
        summed = _sums(groups, sums, overflows[0] if overflows else None)
        return [pa.array(sum_longs(groups, counts.to_numpy())), *summed]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Sum over count; null if there was nothing."""
        counts, sums, *overflows = partials
        if not pa.types.is_decimal(sums.type):
            return pc.divide(sums, pc.cast(counts, pa.float64()))
        places = min(_MOST_DIGITS, sums.type.scale + 4)
        most = decimal.Decimal(10) ** (_MOST_DIGITS - places)
        means: list[decimal.Decimal | None] = []
        rows = zip(sums.to_pylist(), counts.to_pylist(), overflows[0].to_pylist(), strict=True)
        with decimal.localcontext(prec=3 * _MOST_DIGITS, rounding=decimal.ROUND_HALF_UP):
            unit = decimal.Decimal(1).scaleb(-places)
            for total, count, over in rows:
                mean = None if total is None else (total / count).quantize(unit)
                fits = not over and (mean is None or abs(mean) < most)
                if not fits and self.overflow_raises:
                    raise self.overflow(f"the {_MOST_DIGITS} digits of a decimal")
                means.append(mean if fits else None)
        return pa.array(means, pa.decimal128(_MOST_DIGITS, places))

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge | None:
        """Spark's sums, and their quotient."""
        kind = types[0]
        if not pa.types.is_decimal(kind):
            return NativeMerge(("sum({0})", "sum({1})"), "try_divide({1}, {0})")
        if kind.precision > _MOST_DIGITS_DIVIDED:
            return None
        quotient = f"cast({_quotient(kind.scale)} as {_sql(self.result_type(types))})"
        return NativeMerge(("sum({0})", "sum({1})", "sum({2})"), quotient)


def _sums(groups: Groups, values: pa.Array, overflows: pa.Array | None) -> list[pa.Array]:
    """The sum as a double, or as a decimal beside its overflows; null for a group without a value.

    overflows: of the values, if they are sums themselves
    """
    if pa.types.is_decimal(values.type):
        return _decimal_sums(groups, values, overflows)
    valid = valid_rows(values)
    ids = groups.ids[valid]
    numbers = values.drop_null().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    sums = np.bincount(ids, weights=numbers, minlength=groups.size).astype(np.float64)
    return [pa.array(sums, mask=np.bincount(ids, minlength=groups.size) == 0)]


def _decimal_sums(groups: Groups, values: pa.Array, overflows: pa.Array | None) -> list[pa.Array]:
    scale = values.type.scale
    # Arrow's sums of 38 digits wrap; those of 76 cannot before there are 10³⁸ values.
    sums = aggregate(groups, values.cast(pa.decimal256(2 * _MOST_DIGITS, scale)), "sum")
    most = pa.scalar(decimal.Decimal(10**_MOST_DIGITS).scaleb(-scale), sums.type)
    over = pc.fill_null(pc.greater_equal(pc.abs(sums), most), False)
    fitting = pc.if_else(over, pa.scalar(None, sums.type), sums)
    counts = over.cast(pa.int64())
    if overflows is not None:
        counts = pc.add(counts, pa.array(sum_longs(groups, overflows.to_numpy())))
    return [fitting.cast(pa.decimal128(_MOST_DIGITS, scale)), counts]


def _quotient(scale: int) -> str:
    """Spark's quotient of a decimal sum and a count, rounded once, to four more places.

    Spark gives a quotient of 34 digits by a long exactly four more places, but never fewer than
    six: where that is too many, the sum is divided by as many powers of ten more.
    """
    total = f"cast({{1}} as decimal(34, {scale}))"
    if scale >= 2:
        return f"try_divide({total}, cast({{0}} as decimal(20, 0)))"
    shift = 10 ** (2 - scale)
    return f"try_divide({total}, cast({{0}} * {shift} as decimal(20, 0))) * {shift}"


def _sum_types(fold: str, column: str, kind: pa.DataType) -> list[pa.DataType]:
    """What a sum travels as: a decimal has a count of its overflows beside it."""
    sums = _sum_type(fold, column, kind, _MOST_DIGITS)
    return [sums, pa.int64()] if pa.types.is_decimal(sums) else [sums]


def _sum_type(fold: str, column: str, kind: pa.DataType, digits: int) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(_MOST_DIGITS, kind.precision + digits), kind.scale)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return pa.float64()
    raise refuse(fold, column, kind, _NUMBERS)


def _sql(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return "double"
