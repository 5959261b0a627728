"""What a sample of a join's keys tells: its larger keys one by one, the others by partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skewless.spark.join.kinds import Kind
from skewless.spark.join.sizes import F64, I64, LEAST_SHARE, Sizes, results_of
from skewless.spark.join.slots import places

MOST_HOT = 2000
LARGE = 5  # rows or pairs of a sample: with fewer a key matters to no partition
_SOME = 10


@dataclass(frozen=True)
class Keys:
    """Some keys with their rows in a sample."""

    identities: npt.NDArray[np.uint64]
    hashes: I64
    names: tuple[str, ...]
    places: I64
    left: F64
    right: F64

    def take(self, chosen: Any) -> Keys:
        """Those of these numbers."""
        names = tuple(self.names[i] for i in chosen)
        rest = (self.places[chosen], self.left[chosen], self.right[chosen])
        return Keys(self.identities[chosen], self.hashes[chosen], names, *rest)


@dataclass(frozen=True)
class Drawn:
    """A sample of both sides: its larger keys, and the sums of each partition."""

    shares: tuple[float, float]  # of the rows of either side
    keys: Keys
    left: F64  # [partitions] rows of the sample
    right: F64
    pairs: F64  # [partitions] result rows of the sample
    left_nulls: float
    right_nulls: float

    @property
    def rows(self) -> float:
        """How many rows were drawn, of the sides that were not read whole."""
        left, right = self.left.sum() + self.left_nulls, self.right.sum() + self.right_nulls
        return float(left * (self.shares[0] < 1) + right * (self.shares[1] < 1))

    @classmethod
    def of_rows(cls, rows: pa.Table, partitions: int, shares: tuple[float, float]) -> Drawn:
        """Count the rows of a sample.

        rows: left (1 on the left side, 0 on the right), null, identity, hash, name
        """
        null = rows["null"]
        nulls, of_left = pc.sum(null).as_py() or 0, pc.sum(rows.filter(null)["left"]).as_py() or 0
        # A row's number instead of its name: to carry text along would take longer than all else.
        numbered = rows.select(["left", "identity", "hash"]).append_column(
            "row", pa.array(np.arange(rows.num_rows))
        )
        keyed = numbered.filter(pc.invert(null))
        # By both hashes, as a join tells its hot keys: what only one of them takes for alike might
        # pass for a key that both sides have. In one thread, so that keys come in the same order.
        by_key = keyed.group_by(["identity", "hash"], use_threads=False)
        counts = by_key.aggregate([("left", "sum"), ("left", "count"), ("row", "min")])
        n = counts["left_sum"].to_numpy().astype(np.float64)
        m = counts["left_count"].to_numpy() - n
        hashes = counts["hash"].to_numpy().astype(np.int64)
        at = places(hashes, np.zeros(1, np.int32), partitions)
        left, right, pairs = (_by_place(at, each, partitions) for each in (n, m, n * m))
        large = np.flatnonzero((n + m >= LARGE) | (n * m >= LARGE))
        keys = counts.take(large)
        listed = Keys(
            _identities(keys),
            hashes[large],
            _names(rows["name"].take(keys["row_min"])),
            at[large],
            n[large],
            m[large],
        )
        return cls(shares, listed, left, right, pairs, float(of_left), float(nulls - of_left))

    @classmethod
    def of_counts(cls, counts: pa.Table, partitions: int, shares: tuple[float, float]) -> Drawn:
        """Take over what was counted: a line for each larger key and for the rest of a partition.

        counts: place, null, n, m, pairs, identity, hash, name; the last three null for a rest
        """
        at = counts["place"].to_numpy().astype(np.int64)
        n, m, pairs = (counts[name].to_numpy().astype(np.float64) for name in ("n", "m", "pairs"))
        cold = ~counts["null"].to_numpy(zero_copy_only=False)
        large = np.flatnonzero(counts["hash"].is_valid().to_numpy())
        keys = counts.take(large)
        hashes = keys["hash"].to_numpy().astype(np.int64)
        listed = Keys(
            _identities(keys), hashes, _names(keys["name"]), at[large], n[large], m[large]
        )
        nulls = float(n[~cold].sum()), float(m[~cold].sum())
        left, right, met = (_by_place(at[cold], e[cold], partitions) for e in (n, m, pairs))
        return cls(shares, listed, left, right, met, *nulls)

    def candidates(self, kind: Kind, result_weight: float) -> Keys:
        """The keys that may be hot, the heaviest first."""
        keys, (of_left, of_right) = self.keys, self.shares
        n, m = keys.left / of_left, keys.right / of_right
        # One partner in a sample may be chance: too little to call a key hot.
        unsure = (keys.left < _SOME) & (of_left < 1) | (keys.right < _SOME) & (of_right < 1)
        weights = n + m + result_weight * np.where(unsure, 0.0, results_of(kind, n, m))
        total = float(self.left.sum() / of_left + self.right.sum() / of_right)
        order = np.lexsort((keys.identities, -weights))
        order = order[weights[order] >= LEAST_SHARE / 2 * total / self.left.size]
        # Keys that Spark hashes alike, as it may structs with nulls, are treated alike.
        _, first = np.unique(keys.identities[order], return_index=True)
        return keys.take(order[np.sort(first)][:MOST_HOT])

    def sizes(self, hot: Keys, n: F64, m: F64) -> Sizes:
        """The hot keys with their true counts, and what is left of each partition without them."""
        partitions, (of_left, of_right) = self.left.size, self.shares
        rest = [
            np.maximum(mine - _by_place(hot.places, theirs, partitions), 0.0)
            for mine, theirs in (
                (self.left, hot.left),
                (self.right, hot.right),
                (self.pairs, hot.left * hot.right),
            )
        ]
        results = rest[2] / of_left / of_right
        if of_left < 1 and of_right < 1 and rest[0].sum():
            # Pairs of two samples are few: their sum is known well, how it is shared out is not.
            results = results.sum() * rest[0] / rest[0].sum()
        return Sizes(
            partitions=partitions,
            left_rows=float(rest[0].sum() + hot.left.sum() + self.left_nulls) / of_left,
            right_rows=float(rest[1].sum() + hot.right.sum() + self.right_nulls) / of_right,
            left_nulls=self.left_nulls / of_left,
            right_nulls=self.right_nulls / of_right,
            identities=hot.identities,
            hashes=hot.hashes,
            names=hot.names,
            left=n,
            right=m,
            cold_left=rest[0] / of_left,
            cold_right=rest[1] / of_right,
            cold_results=results,
        )


def seen_often(rows: pa.Table, least: int) -> tuple[npt.NDArray[np.uint64], I64]:
    """The identities and hashes of keys with so many rows in a sample, of the largest of them."""
    keyed = rows.select(["identity", "hash"]).filter(pc.invert(rows["null"]))
    counts = keyed.group_by(["identity", "hash"]).aggregate([([], "count_all")])
    often = counts.filter(pc.greater_equal(counts["count_all"], least))
    often = often.sort_by([("count_all", "descending"), ("identity", "ascending")])
    identities = _identities(often)
    _, first = np.unique(identities, return_index=True)  # Spark may hash different keys alike
    largest = np.sort(first)[:MOST_HOT]
    return identities[largest], often["hash"].to_numpy().astype(np.int64)[largest]


def _by_place(at: I64, rows: F64, partitions: int) -> F64:
    return np.bincount(at, rows, partitions).astype(np.float64)


def _identities(keys: pa.Table) -> npt.NDArray[np.uint64]:
    return keys["identity"].to_numpy().astype(np.int64).view(np.uint64)


def _names(names: Any) -> tuple[str, ...]:
    return tuple(names.to_pylist())
