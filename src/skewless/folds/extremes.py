"""The least and the greatest value of a column, in Spark's order: NaN is above every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.folds.api import Fold, NativeMerge, is_plain, refuse
from skewless.folds.expression import check_column
from skewless.folds.groups import Groups, aggregate

_MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)


class Extreme(Fold):
    """Base of min and max: nulls are ignored, the type stays."""

    _how: str
    compares = True

    def __init__(self, column: Any) -> None:
        self.columns = (check_column(self._how, column),)
        self.name = f"{self._how}({self.columns[0]})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The column's own type."""
        if not is_plain(types[0]):
            raise refuse(self._how, self.columns[0], types[0], "values with an order")
        return [types[0]]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The column's own type."""
        return types[0]

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """The extreme of each group; null if all are."""
        values = columns[0]
        kind = values.type
        if pa.types.is_duration(kind):  # Arrow has no extremes of these
            return [aggregate(groups, values.cast(pa.int64()), self._how).cast(kind)]
        if not pa.types.is_floating(kind):
            return [aggregate(groups, values, self._how)]
        # Arrow's own extremes leave NaN out, Spark's do not: compare floats as ordered integers.
        found = aggregate(groups, _ordered(values.cast(pa.float64())), self._how)
        return [_floats(found).cast(kind)]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """The extreme of extremes."""
        return self.reduce_groups(groups, partials)

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """The value itself."""
        return partials[0]

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge:
        """Spark's own."""
        return NativeMerge((f"{self._how}({{0}})",), "{0}")


class Min(Extreme):
    """The least value."""

    _how = "min"


class Max(Extreme):
    """The greatest value."""

    _how = "max"


def _ordered(values: pa.Array) -> pa.Array:
    """Doubles as longs of the same order, the one NaN last."""
    null = values.is_null().to_numpy(zero_copy_only=False)
    numbers = values.fill_null(0.0).to_numpy()
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    return pa.array(_flip(bits), mask=null)


def _floats(ordered: pa.Array) -> pa.Array:
    null = ordered.is_null().to_numpy(zero_copy_only=False)
    return pa.array(_flip(ordered.fill_null(0).to_numpy()).view(np.float64), mask=null)


def _flip(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    # A negative double grows with its magnitude bits the wrong way round; its own inverse.
    return bits ^ ((bits >> 63) & _MAGNITUDE)
