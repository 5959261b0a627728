"""Does a fold obey the laws that make its result independent of who handled which message?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.errors import SkewlessError, brief, unknown
from skewless.folds.api import Fold
from skewless.folds.expression import Expression
from skewless.folds.groups import I64, Groups

Partial = list[pa.Array]
_SPLITS = 16


def check_fold(fold: Fold, sample: pa.Table | Mapping[str, Any]) -> None:
    """Raise SkewlessError naming the law that the fold breaks on the sample, if it breaks one.

    sample: the fold's columns with a few messages each; it is split in many ways and folded.
    """
    if not isinstance(fold, Fold):
        raise SkewlessError(
            f"check_fold takes a fold, such as an object of your own class, not {fold!r}."
        )
    if not isinstance(sample, pa.Table | Mapping):
        raise SkewlessError(
            f"A sample is a dict of column names to values or a pyarrow.Table, not {brief(sample)}."
        )
    table = _table_of(sample)
    for column in fold.columns:
        if isinstance(column, Expression):
            raise SkewlessError(
                f"Fold '{fold.name}' is of an expression, which only Spark computes: hand the "
                "sample to group(…).fold(…, sample=…), with a column of the expression's name."
            )
        if column not in table.column_names:
            raise unknown("column of the sample called", column, table.column_names)
    if table.num_rows < 3:
        raise SkewlessError(
            f"A sample to check fold '{fold.name}' needs at least 3 messages, not {table.num_rows}."
        )
    columns = [table[name].combine_chunks() for name in fold.columns]
    bench = _Bench(fold, [column.type for column in columns])
    random = np.random.default_rng(0)
    trials = []
    for _ in range(_SPLITS):
        rows = random.permutation(table.num_rows)
        cuts = np.sort(random.choice(np.arange(1, table.num_rows), 2, replace=False))
        a, b, c = (bench.reduce(columns, part) for part in np.split(rows, cuts))
        trials.append((a, b, c, bench.reduce(columns, rows)))
    # Law by law, not split by split: the first that fails is the simplest to understand.
    for law, meaning, sides in _LAWS:
        for trial in trials:
            left, right = (bench.finish(side) for side in sides(bench, *trial))
            if not same(left, right, fold.tolerance):
                raise SkewlessError(
                    f"Fold '{fold.name}' breaks {law}: {meaning}, "
                    f"but on the sample they gave {left!r} and {right!r}."
                )


def _table_of(sample: pa.Table | Mapping[str, Any]) -> pa.Table:
    if isinstance(sample, pa.Table):
        return sample
    try:
        return pa.table(dict(sample))
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise SkewlessError(
            f"A sample has a list of values of one type for each column, and this has not: {error}"
        ) from None


class _Bench:
    """The fold on one key."""

    def __init__(self, fold: Fold, types: Sequence[pa.DataType]) -> None:
        self.fold = fold
        fold.partial_types(types)
        self.zero: Partial = fold.zero_partial(types)

    def reduce(self, columns: Sequence[pa.Array], rows: I64) -> Partial:
        taken = [column.take(pa.array(rows)) for column in columns]
        return self.fold.reduce_groups(Groups(np.zeros(rows.size, np.int64), 1), taken)

    def merge(self, a: Partial, b: Partial) -> Partial:
        both = [pa.concat_arrays([x, y]) for x, y in zip(a, b, strict=True)]
        return self.fold.merge_groups(Groups(np.zeros(2, np.int64), 1), both)

    def finish(self, partial: Partial) -> Any:
        return self.fold.finish_groups(partial)[0].as_py()


_Sides = Callable[[_Bench, Partial, Partial, Partial, Partial], tuple[Partial, Partial]]

_LAWS: tuple[tuple[str, str, _Sides], ...] = (
    (
        "identity",
        "merging zero with x must give x",
        lambda fold, a, b, c, whole: (fold.merge(fold.zero, a), a),
    ),
    (
        "identity",
        "merging x with zero must give x",
        lambda fold, a, b, c, whole: (fold.merge(a, fold.zero), a),
    ),
    (
        "commutativity",
        "merge(a, b) must equal merge(b, a)",
        lambda fold, a, b, c, whole: (fold.merge(a, b), fold.merge(b, a)),
    ),
    (
        "associativity",
        "merge(merge(a, b), c) must equal merge(a, merge(b, c))",
        lambda fold, a, b, c, whole: (
            fold.merge(fold.merge(a, b), c),
            fold.merge(a, fold.merge(b, c)),
        ),
    ),
    (
        "agreement of reduce and merge",
        "folding all messages must equal merging the folds of their parts",
        lambda fold, a, b, c, whole: (whole, fold.merge(fold.merge(a, b), c)),
    ),
)


def same(a: Any, b: Any, tolerance: float) -> bool:
    """Equal up to the tolerance in every number; NaN equals NaN."""
    if isinstance(a, float | int) and isinstance(b, float | int) and type(a) is not bool:
        return (a != a and b != b) or math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return bool(a == b)
