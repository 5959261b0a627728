"""About how many distinct values: Apache DataSketches' HyperLogLog, one sketch per key."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.folds.api import Fold, NativeMerge, is_plain, refuse
from skewless.folds.expression import check_column
from skewless.folds.groups import Groups, bounds, group_rows
from skewless.hashing import identities

_LEAST, _MOST = 7, 21


class DistinctCount(Fold):
    """The number of distinct values that are not null, within about 0.83 / 2^(lg_registers / 2).

    Exact up to a handful of values per key. The values are hashed by compiled code; the sketch is
    then told each distinct pair of key and value of a batch once. Spark reads the same bytes, so
    it merges the sketches itself (`hll_union_agg`).
    """

    compares = True

    def __init__(self, column: Any, lg_registers: int = 12) -> None:
        lg_registers = whole("lg_registers", lg_registers)
        if not _LEAST <= lg_registers <= _MOST:
            raise SkewlessError(
                f"approx_count_distinct keeps 2^{_LEAST} to 2^{_MOST} registers per key: "
                f"lg_registers is a whole number from {_LEAST} to {_MOST}, not {lg_registers}."
            )
        self.columns = (check_column("approx_count_distinct", column),)
        self.name = f"approx_count_distinct({self.columns[0]})"
        self.lg_registers = lg_registers
        # A union estimates by another formula than a sketch that saw every value itself.
        self.tolerance = 4 * 1.04 / float(2 ** (lg_registers / 2))

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The sketch's bytes."""
        _sketches()
        kind = types[0]
        if not is_plain(kind) or pa.types.is_decimal(kind) or pa.types.is_duration(kind):
            raise refuse(
                "approx_count_distinct",
                self.columns[0],
                kind,
                "strings, bytes, whole numbers, floats, dates or timestamps",
            )
        return [pa.binary()]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A long."""
        return pa.int64()

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """One sketch per group."""
        datasketches = _sketches()
        valid = columns[0].is_valid()
        hashes = identities(columns[0].filter(valid)).view(np.int64)
        ids = groups.ids[valid.to_numpy(zero_copy_only=False)]
        _, (pair_ids, pair_hashes) = group_rows([pa.array(ids), pa.array(hashes)])
        order, starts = bounds(Groups(pair_ids.to_numpy(), groups.size))
        values = pair_hashes.to_numpy()[order].tolist()
        sketches = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            sketch = datasketches.hll_sketch(self.lg_registers, datasketches.tgt_hll_type.HLL_8)
            update = sketch.update
            for value in values[start:stop]:
                update(value)
            sketches.append(sketch.serialize_compact())
        return [pa.array(sketches, pa.binary())]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """The union of the sketches of each group."""
        datasketches = _sketches()
        order, starts = bounds(groups)
        sketches = partials[0].take(pa.array(order)).to_pylist()
        out = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if stop - start == 1:
                out.append(sketches[start])
                continue
            union = datasketches.hll_union(self.lg_registers)
            for sketch in _open(sketches[start:stop]):
                union.update(sketch)
            result = union.get_result(datasketches.tgt_hll_type.HLL_8)
            out.append(result.serialize_compact())
        return [pa.array(out, pa.binary())]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """The sketch's estimate, rounded."""
        estimates = [s.get_estimate() for s in _open(partials[0].to_pylist())]
        return pa.array(np.rint(np.array(estimates, np.float64)).astype(np.int64))

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge:
        """Spark's union of HyperLogLog sketches."""
        return NativeMerge(("hll_union_agg({0}, true)",), "hll_sketch_estimate({0})")


def _sketches() -> Any:
    """The package of the sketches; not every Python that runs the rest has it ready-made."""
    try:
        import datasketches
    except ImportError as error:
        raise SkewlessError(
            "approx_count_distinct needs the package datasketches, which this Python "
            f"({sys.executable}) does not have: pip install datasketches, which on Python 3.14 "
            "and later builds it with a C++ compiler."
        ) from error
    return datasketches


def _open(sketches: Iterable[bytes]) -> list[Any]:
    datasketches = _sketches()
    return [datasketches.hll_sketch.deserialize(sketch) for sketch in sketches]


def distinct_count(column: Any, lg_registers: int = 12) -> Fold:
    """The old name of `approx_count_distinct`, whose column it also names."""
    warnings.warn(
        "folds.distinct_count is now folds.approx_count_distinct, as Spark calls it.",
        DeprecationWarning,
        stacklevel=2,
    )
    made = DistinctCount(column, lg_registers)
    made.name = f"distinct_count({made.columns[0]})"
    return made
