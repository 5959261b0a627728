"""The most frequent values of a column, by mergeable counters (Misra and Gries).

Agarwal, Cormode, Huang, Phillips, Wei, Yi: "Mergeable Summaries" (PODS 2012). A key keeps at most
`counters` values with their counts. When it meets more, the first count that finds no place is
subtracted from all of them, and added to the key's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.folds.api import Fold, is_plain, refuse
from skewless.folds.expression import check_column
from skewless.folds.groups import I64, Groups, bounds, group_rows
from skewless.folds.numbers import sum_longs


class TopK(Fold):
    """The k most frequent values of a column, most frequent first; of equals, the lesser value.

    A result is a list of (item, count, error): the true count lies in count … count + error. It
    is exact, with error 0, for keys of at most `counters` distinct values (default 64·k); else
    the error is at most the key's messages ÷ (counters + 1), and values that are no more frequent
    than that may be missing. Nulls are ignored.
    """

    compares = True

    def __init__(self, column: Any, k: int = 10, counters: int | None = None) -> None:
        self.columns = (check_column("top_k", column),)
        k = whole("k of top_k", k)
        if k < 1:
            raise SkewlessError(f"top_k gives at least 1 value, not {k}.")
        self.k = k
        self.counters = 64 * k if counters is None else whole("counters of top_k", counters)
        if self.counters < k:
            raise SkewlessError(
                f"top_k with k={k} needs at least {k} counters per key, not {self.counters}."
            )
        self.name = f"top_{k}({self.columns[0]})"

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The values with their counts, and the error."""
        if not is_plain(types[0]):
            raise refuse("top_k", self.columns[0], types[0], "values without inner structure")
        return [pa.list_(types[0]), pa.list_(pa.int64()), pa.int64()]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """A list of item, count and error."""
        return pa.list_(
            pa.struct([("item", types[0]), ("count", pa.int64()), ("error", pa.int64())])
        )

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Count the pairs of group and value."""
        valid = columns[0].is_valid()
        ids = groups.ids[valid.to_numpy(zero_copy_only=False)]
        ones = np.ones(ids.size, np.int64)
        return self._keep(groups.size, ids, columns[0].filter(valid), ones, None)

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Counts of the same value add up, and so do the errors."""
        items, counts, errors = partials
        lengths = pc.list_value_length(items).to_numpy()
        ids = np.repeat(groups.ids, lengths)
        summed = sum_longs(groups, errors.to_numpy())
        return self._keep(groups.size, ids, items.flatten(), counts.flatten().to_numpy(), summed)

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """The first k: partials are kept in order."""
        items, counts, errors = partials
        lengths = pc.list_value_length(items).to_numpy()
        starts = np.cumsum(lengths) - lengths
        ranks = np.arange(int(lengths.sum())) - np.repeat(starts, lengths)
        first = pa.array(ranks < self.k)
        all_errors = pa.array(np.repeat(errors.to_numpy(), lengths))
        elements = pa.StructArray.from_arrays(
            [c.filter(first) for c in (items.flatten(), counts.flatten(), all_errors)],
            names=["item", "count", "error"],
        )
        return pa.ListArray.from_arrays(_offsets(np.minimum(lengths, self.k)), elements)

    def _keep(
        self, size: int, ids: I64, items: pa.Array, counts: I64, errors: I64 | None
    ) -> list[pa.Array]:
        """The greatest counters of each group, in order, with what their pruning cost."""
        pairs, (pair_ids, pair_items) = group_rows([pa.array(ids), items])
        totals = sum_longs(pairs, counts)
        owners = pair_ids.to_numpy()
        order = np.lexsort((_ranks(pair_items), -totals, owners))
        owners, totals = owners[order], totals[order]
        _, starts = bounds(Groups(owners, size))
        ranks = np.arange(owners.size) - starts[owners]
        excess = np.zeros(size, np.int64)
        cut = ranks == self.counters
        excess[owners[cut]] = totals[cut]
        totals = totals - excess[owners]
        stays = (totals > 0) & (ranks < self.counters)
        offsets = _offsets(np.bincount(owners[stays], minlength=size))
        kept = pair_items.take(pa.array(order[stays]))
        error = excess if errors is None else errors + excess
        return [
            pa.ListArray.from_arrays(offsets, kept),
            pa.ListArray.from_arrays(offsets, pa.array(totals[stays])),
            pa.array(error),
        ]


def _ranks(items: pa.Array) -> I64:
    """The place of each item in the order of items, so that ties are broken by value."""
    ranks = np.empty(len(items), np.int64)
    distinct = items.unique()
    order = pc.sort_indices(distinct).to_numpy()
    ranks_of = np.empty(len(distinct), np.int64)
    ranks_of[order] = np.arange(len(distinct))
    ranks[:] = ranks_of[pc.index_in(items, distinct).to_numpy()]
    return ranks


def _offsets(lengths: Any) -> pa.Array:
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
