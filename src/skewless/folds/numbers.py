"""Count, sum and mean, with the types and null rules of Spark's own aggregates."""

from __future__ import annotations

import decimal
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.folds.api import Fold, NativeMerge, check_column, refuse
from skewless.folds.groups import I64, Groups, aggregate, valid_rows

_MOST_DIGITS = 38
_MOST_DIGITS_DIVIDED = 24  # sums of more would not fit the 34 digits that `_quotient` divides
_LOW = np.int64(0xFFFFFFFF)
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

    def __init__(self, column: str | None = None) -> None:
        self.columns = () if column is None else (check_column("count", column),)
        self.name = "count" if column is None else f"count({column})"

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


class Sum(Fold):
    """The sum of a column: a long for whole numbers, a double for floats, else a wider decimal.

    A long is summed in two halves, the low one signed, so that no order of messages overflows on
    the way: the result overflows exactly when the total does, and then Spark's ANSI setting says
    what happens. A decimal whose sum exceeds 38 digits is an error.
    """

    def __init__(self, column: str) -> None:
        self.columns = (check_column("sum", column),)
        self.name = f"sum({column})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """High and low half of a long, or one double or decimal."""
        kind = types[0]
        if pa.types.is_integer(kind):
            return [pa.int64(), pa.int64()]
        return [_sum_type("sum", self.columns[0], kind, _MOST_DIGITS)]

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
        return [_sum(groups, values, self.name)]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Partial sums add up."""
        if len(partials) == 1:
            return [_sum(groups, partials[0], self.name)]
        empty = np.bincount(groups.ids[valid_rows(partials[0])], minlength=groups.size) == 0
        return [
            pa.array(sum_longs(groups, pc.fill_null(half, 0).to_numpy()), mask=empty)
            for half in partials
        ]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Join the halves."""
        if len(partials) == 1:
            return partials[0]
        high, low = partials
        carried = pc.add(high, pc.shift_right(low, 32))
        return pc.add_checked(
            pc.multiply_checked(carried, 1 << 32), pc.bit_wise_and(low, int(_LOW))
        )

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge:
        """Spark's sum of each half."""
        if pa.types.is_integer(types[0]):
            return NativeMerge(
                ("sum({0})", "sum({1})"),
                "({0} + shiftright({1}, 32)) * 4294967296L + ({1} & 4294967295L)",
            )
        return NativeMerge(("sum({0})",), f"cast({{0}} as {_sql(self.result_type(types))})")


class Mean(Fold):
    """The mean of a column: a double, or for decimals a decimal of four more places."""

    def __init__(self, column: str) -> None:
        self.columns = (check_column("mean", column),)
        self.name = f"mean({column})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """A sum and a count."""
        return [_sum_type("mean", self.columns[0], types[0], _MOST_DIGITS), pa.int64()]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A double, or a decimal of four more digits and places."""
        kind = types[0]
        if not pa.types.is_decimal(kind):
            return pa.float64()
        return pa.decimal128(
            min(_MOST_DIGITS, kind.precision + 4), min(_MOST_DIGITS, kind.scale + 4)
        )

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Sum and count the values that are not null."""
        counts = np.bincount(groups.ids[valid_rows(columns[0])], minlength=groups.size)
        return [_sum(groups, columns[0], self.name), pa.array(counts.astype(np.int64))]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Sums and counts add up."""
        sums, counts = partials
        return [_sum(groups, sums, self.name), pa.array(sum_longs(groups, counts.to_numpy()))]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Sum over count; null if there was nothing."""
        sums, counts = partials
        if not pa.types.is_decimal(sums.type):
            return pc.divide(sums, pc.cast(counts, pa.float64()))
        places = min(_MOST_DIGITS, sums.type.scale + 4)
        with decimal.localcontext(prec=2 * _MOST_DIGITS, rounding=decimal.ROUND_HALF_UP):
            unit = decimal.Decimal(1).scaleb(-places)
            means = [
                None if total is None else (total / count).quantize(unit)
                for total, count in zip(sums.to_pylist(), counts.to_pylist(), strict=True)
            ]
        return pa.array(means, pa.decimal128(_MOST_DIGITS, places))

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge | None:
        """Spark's sums, and their quotient."""
        kind, quotient = types[0], "try_divide({0}, {1})"
        if pa.types.is_decimal(kind):
            if kind.precision > _MOST_DIGITS_DIVIDED:
                return None
            quotient = f"cast({_quotient(kind.scale)} as {_sql(self.result_type(types))})"
        return NativeMerge(("sum({0})", "sum({1})"), quotient)


def _sum(groups: Groups, values: pa.Array, name: str) -> pa.Array:
    """The sum as a double or a decimal; null for a group without a value."""
    if pa.types.is_decimal(values.type):
        return _decimal_sum(groups, values, name)
    valid = valid_rows(values)
    ids = groups.ids[valid]
    numbers = values.drop_null().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    sums = np.bincount(ids, weights=numbers, minlength=groups.size).astype(np.float64)
    return pa.array(sums, mask=np.bincount(ids, minlength=groups.size) == 0)


def _decimal_sum(groups: Groups, values: pa.Array, name: str) -> pa.Array:
    scale = values.type.scale
    # Arrow's sums of 38 digits wrap; those of 76 cannot before there are 10³⁸ values.
    sums = aggregate(groups, values.cast(pa.decimal256(2 * _MOST_DIGITS, scale)), "sum")
    try:
        return sums.cast(pa.decimal128(_MOST_DIGITS, scale))
    except pa.ArrowInvalid:
        raise SkewlessError(
            f"{name} exceeds the {_MOST_DIGITS} digits of a decimal: sum a double instead."
        ) from None


def _quotient(scale: int) -> str:
    """Spark's quotient of a decimal sum and a count, rounded once, to four more places.

    Spark gives a quotient of 34 digits by a long exactly four more places, but never fewer than
    six: where that is too many, the sum is divided by as many powers of ten more.
    """
    total = f"cast({{0}} as decimal(34, {scale}))"
    if scale >= 2:
        return f"try_divide({total}, cast({{1}} as decimal(20, 0)))"
    shift = 10 ** (2 - scale)
    return f"try_divide({total}, cast({{1}} * {shift} as decimal(20, 0))) * {shift}"


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
