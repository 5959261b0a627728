"""Number, mean and spread of a column, in a form that merges without losing digits.

Chan, Golub, LeVeque: "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances"
(1979): n, the mean, and m2, the sum of squared distances from the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.folds import Fold
from skewless.folds.api import refuse
from skewless.folds.expression import check_column
from skewless.folds.groups import Groups, valid_rows

F64 = npt.NDArray[np.float64]
PARTS = ("n", "mean", "m2")


def merge_moments(groups: Groups, n: F64, mean: F64, m2: F64) -> tuple[F64, F64, F64]:
    """The moments of each group, from those of its parts."""
    total = _sums(groups, n)
    centre = _sums(groups, n * mean) / np.where(total > 0, total, 1.0)
    return total, centre, _sums(groups, m2 + n * (mean - centre[groups.ids]) ** 2)


def _sums(groups: Groups, values: F64) -> F64:
    return np.bincount(groups.ids, values, groups.size).astype(np.float64)


class Moments(Fold):
    """n, mean and m2 of a column of doubles as one struct; nulls are ignored."""

    def __init__(self, column: str) -> None:
        self.columns = (check_column("moments", column),)
        self.name = f"moments({column})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """Three doubles."""
        if not pa.types.is_float64(types[0]):
            raise refuse("moments", self.columns[0], types[0], "doubles")
        return [pa.float64()] * 3

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A struct of three doubles."""
        return pa.struct([(name, pa.float64()) for name in PARTS])

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Two passes over a batch: the means, then the distances from them."""
        valid = valid_rows(columns[0])
        values = pc.drop_null(columns[0]).to_numpy(zero_copy_only=False)
        mine = Groups(groups.ids[valid], groups.size)
        ones, zeros = np.ones(values.size), np.zeros(values.size)
        return [pa.array(part) for part in merge_moments(mine, ones, values, zeros)]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """The moments of all parts together."""
        n, mean, m2 = (part.to_numpy(zero_copy_only=False) for part in partials)
        return [pa.array(part) for part in merge_moments(groups, n, mean, m2)]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Side by side."""
        return pa.StructArray.from_arrays(list(partials), names=list(PARTS))
