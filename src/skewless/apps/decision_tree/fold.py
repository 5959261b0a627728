"""The histogram of a column as a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skewless.apps.decision_tree.histogram import Histogram, empty, histogram, merged
from skewless.folds import PerKeyFold
from skewless.folds.expression import check_column

PARTS = ("points", "counts", "single")
KIND = pa.struct(
    [
        ("points", pa.list_(pa.float64())),
        ("counts", pa.list_(pa.float64())),
        ("single", pa.list_(pa.bool_())),
    ]
)


class HistogramFold(PerKeyFold):
    """At most `bins` points of a column of doubles without nulls."""

    name = "histogram"
    result = KIND

    def __init__(self, column: str, bins: int) -> None:
        self.columns = (check_column("histogram", column),)
        self.bins = bins

    def zero(self) -> Histogram:
        """No value."""
        return empty()

    def reduce(self, state: Any, *columns: pa.Array) -> Histogram:
        """Values that come together are joined together."""
        values = columns[0].to_numpy(zero_copy_only=False)
        return self.merge(state, histogram(values, self.bins))

    def merge(self, a: Any, b: Any) -> Histogram:
        """The histogram of both."""
        return merged(a, b, self.bins)

    def finish(self, state: Any) -> dict[str, Any]:
        """Its three arrays."""
        return as_dict(state)


def as_dict(held: Histogram) -> dict[str, Any]:
    """As lists, in the form of `KIND`."""
    return {name: part.tolist() for name, part in zip(PARTS, held, strict=True)}


def from_dict(row: dict[str, Any]) -> Histogram:
    """The histogram of such lists."""
    return Histogram(
        np.array(row["points"], np.float64),
        np.array(row["counts"], np.float64),
        np.array(row["single"], bool),
    )
