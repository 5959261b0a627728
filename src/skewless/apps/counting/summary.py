"""The most frequent items that one worker saw: a SpaceSaving summary that knows its items.

Batches are counted exactly and merged into the summary, which keeps at most `capacity` counters.
So a summary of N messages promises what SpaceSaving does: an item's true count lies between its
count − error and its count, and neither an error nor the count of an item without a counter is more
than N ÷ capacity (the argument is in `sketch/space_saving.py`; here nothing is ever lifted).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.sketch.space_saving import F64, Summary, merge

U64 = npt.NDArray[np.uint64]
UNLIMITED = 2**62  # counters: every count is exact


class ItemSummary(NamedTuple):
    """A summary by identity, and the item that each identity stands for."""

    counts: Summary
    items: pa.Array  # [n] in the order of counts.keys

    def scaled(self, factor: float) -> ItemSummary:
        """The same with every count multiplied: how a past fades."""
        held = self.counts
        return ItemSummary(
            held._replace(
                counts=held.counts * factor,
                errors=held.errors * factor,
                missing=held.missing * factor,
                total=held.total * factor,
            ),
            self.items,
        )


def nothing(items: pa.DataType, capacity: int) -> ItemSummary:
    """The summary of no message."""
    empty, zero = np.empty(0), np.zeros(1)
    counts = Summary(empty.astype(np.uint64), empty, empty, zero, zero, np.array([capacity]))
    return ItemSummary(counts, pa.array([], items))


def counted(identities: pa.Array, items: pa.Array, capacity: int) -> ItemSummary:
    """The summary of these messages alone."""
    keys = identities.to_numpy(zero_copy_only=False).view(np.uint64)
    found, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    whole = Summary(
        found,
        counts.astype(np.float64),
        np.zeros(found.size),
        np.zeros(1),
        np.array([float(keys.size)]),
        np.array([capacity]),
    )
    exact = ItemSummary(whole, items.take(pa.array(firsts)))
    return merged(exact, nothing(items.type, capacity)) if found.size > capacity else exact


def merged(a: ItemSummary, b: ItemSummary) -> ItemSummary:
    """The summary of both; errors add up."""
    both = merge(a.counts, b.counts)
    keys = np.concatenate([a.counts.keys, b.counts.keys])
    order = np.argsort(keys, kind="stable")
    at = order[np.searchsorted(keys, both.keys, sorter=order)]
    return ItemSummary(both, pa.concat_arrays([a.items, b.items]).take(pa.array(at)))


class Answer(NamedTuple):
    """What all workers know together: count − error ≤ truth ≤ count."""

    keys: U64
    items: pa.Array
    counts: F64
    errors: F64
    missing: float  # no other item came more often
    total: float

    def at(self, keys: U64) -> tuple[F64, F64]:
        """Counts and errors of these identities; of an unknown one only the bound is known."""
        counts = np.full(keys.size, self.missing)
        errors = counts.copy()
        where = np.minimum(np.searchsorted(self.keys, keys), max(self.keys.size - 1, 0))
        known = self.keys[where] == keys if self.keys.size else np.zeros(keys.size, bool)
        counts[known], errors[known] = self.counts[where[known]], self.errors[where[known]]
        return counts, errors


def together(summaries: list[ItemSummary], workers_per_key: int) -> Answer:
    """The summaries of different workers as one answer; nothing is left out.

    A key has been on at most `workers_per_key` workers. So beside those that hold it, it can have
    missed a counter only on as many others: its error is the sum of that many workers' terms, not
    of all.
    """
    keys = np.concatenate([s.counts.keys for s in summaries])
    found, firsts, owners = np.unique(keys, return_index=True, return_inverse=True)
    size = found.size
    counts, errors = np.zeros(size), np.zeros(size)
    np.add.at(counts, owners, np.concatenate([s.counts.counts for s in summaries]))
    np.add.at(errors, owners, np.concatenate([s.counts.errors for s in summaries]))
    missing = np.array([s.counts.missing[0] for s in summaries])
    room = min(workers_per_key, missing.size)
    falling = np.argsort(-missing, kind="stable")
    # Per key, the largest bounds of workers that do not hold it, until it has been on so many.
    held = np.zeros((missing.size, size), bool)
    start = 0
    for worker, summary in enumerate(summaries):
        stop = start + summary.counts.keys.size
        held[worker, owners[start:stop]] = True
        start = stop
    left = room - held.sum(axis=0)
    for worker in falling:
        takes = ~held[worker] & (left > 0)
        counts[takes] += missing[worker]
        errors[takes] += missing[worker]
        left[takes] -= 1
    items = pa.concat_arrays([s.items for s in summaries]).take(pa.array(firsts))
    total = float(sum(s.counts.total[0] for s in summaries))
    return Answer(found, items, counts, errors, float(missing[falling[:room]].sum()), total)
