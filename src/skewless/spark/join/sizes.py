"""How many rows each key of a join has on either side, as far as a plan needs to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewless.spark.join.kinds import Kind

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LEAST_SHARE = 0.02  # of a partition's mean load: what makes a key worth a place of its own


@dataclass(frozen=True)
class Sizes:
    """What a join is made of; counts of a sample are scaled up."""

    partitions: int
    left_rows: float
    right_rows: float
    left_nulls: float  # rows with a null in the key
    right_nulls: float
    identities: npt.NDArray[np.uint64]  # [k] xxhash64 of the hot keys' columns
    hashes: I64  # [k] Spark's hash of them
    names: tuple[str, ...]  # [k]
    left: F64  # [k] rows
    right: F64  # [k] rows
    cold_left: F64  # [partitions] rows of all other keys
    cold_right: F64
    cold_results: F64  # [partitions] their result rows in an inner join, estimated

    def results(self, kind: Kind) -> F64:
        """Result rows of each hot key."""
        return results_of(kind, self.left, self.right)

    def cold(self, kind: Kind, result_weight: float) -> F64:
        """The load of each partition without the hot keys."""
        results = self.cold_left if kind.filters else self.cold_results
        return self.cold_left + self.cold_right + result_weight * results


def nothing_counted(partitions: int) -> Sizes:
    """What is known of a join without a look at its keys."""
    none, each = np.empty(0), np.zeros(partitions)
    return Sizes(
        partitions=partitions,
        left_rows=0.0,
        right_rows=0.0,
        left_nulls=0.0,
        right_nulls=0.0,
        identities=np.empty(0, np.uint64),
        hashes=np.empty(0, np.int64),
        names=(),
        left=none,
        right=none,
        cold_left=each,
        cold_right=each,
        cold_results=each,
    )


def results_of(kind: Kind, left: F64, right: F64) -> F64:
    """Result rows of keys with so many rows on the two sides."""
    if kind.filters:
        return np.where((right > 0) == (kind.name == "left_semi"), left, 0.0)
    alone_left = np.where(right == 0, left, 0.0) if kind.keeps_left else 0.0
    alone_right = np.where(left == 0, right, 0.0) if kind.keeps_right else 0.0
    return left * right + alone_left + alone_right
