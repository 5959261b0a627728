"""A fold whose partial is a summary per worker: merged worker by worker, joined at the end."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import pyarrow as pa

from skewless.apps.counting.summary import (
    UNLIMITED,
    Answer,
    ItemSummary,
    counted,
    merged,
    together,
)
from skewless.folds import PerKeyFold

ITEM, IDENTITY = "skewless_item", "skewless_identity"


class WorkerSummaries(PerKeyFold):
    """The most frequent items: a state is a summary for each worker that saw messages.

    A worker's summary is never mixed with another's, so that the error of an item is known to come
    from no more workers than the item has been on.

    kind: the Arrow type of the items
    counters: the most that a worker keeps; None for all, and exact counts
    workers_per_key: on how many workers the scheme puts a key at most
    least_share, most: what `finish` gives: items of at least that share, and the first so many
    about: what the items are, kept with the state of a stream
    """

    name = "found"
    columns = (ITEM, IDENTITY)

    def __init__(
        self,
        kind: pa.DataType,
        counters: int | None,
        workers_per_key: int,
        least_share: float = 0.0,
        most: int | None = None,
        about: str = "",
    ) -> None:
        self.kind = kind
        self.counters = UNLIMITED if counters is None else counters
        self.workers_per_key = workers_per_key
        self.least_share, self.most, self.about = least_share, most, about
        self.worker = 0
        number = pa.int64()
        item = shown_type(kind)
        self.result = pa.list_(
            pa.struct([("item", item), ("count", number), ("error", number), ("total", number)])
        )

    def on_worker(self, worker: int) -> Self:
        """The same, which says whose summary it makes."""
        mine = copy.copy(self)
        mine.worker = worker
        return mine

    def zero(self) -> dict[int, ItemSummary]:
        """No worker has seen anything."""
        return {}

    def reduce(self, state: Any, *columns: pa.Array) -> dict[int, ItemSummary]:
        """Count a batch and merge it into this worker's summary."""
        items, identities = columns[0].cast(self.kind), columns[1]
        return self.merge(state, {self.worker: counted(identities, items, self.counters)})

    def merge(self, a: Any, b: Any) -> dict[int, ItemSummary]:
        """Worker by worker."""
        return join_workers(a, b, merged)

    def finish(self, state: Any) -> list[dict[str, Any]]:
        """The items, most frequent first; of equals, the one with the lesser item."""
        return rows_of(self.answer(state), self.least_share, self.most)

    def answer(self, state: dict[int, ItemSummary]) -> Answer:
        """What all workers know together."""
        return together([state[worker] for worker in sorted(state)], self.workers_per_key)


def join_workers(a: dict[int, Any], b: dict[int, Any], join: Any) -> dict[int, Any]:
    """Two states, by worker, as one."""
    both = {worker: join(a[worker], b[worker]) for worker in a.keys() & b.keys()}
    return {**a, **b, **both}


def rows_of(answer: Answer, least_share: float, most: int | None) -> list[dict[str, Any]]:
    """The first rows of an answer that reach the share."""
    order = ranked(answer.items, answer.counts)
    # 7 of 100 are a share of 0.07, but 0.07 · 100 is more than 7.
    order = order[answer.counts[order] / max(answer.total, 1) >= least_share][:most]
    items = shown_items(answer.items, order)
    numbers = zip(items, answer.counts[order].tolist(), answer.errors[order].tolist(), strict=True)
    total = round(answer.total)
    return [
        {"item": item, "count": round(count), "error": round(error), "total": total}
        for item, count, error in numbers
    ]


def shown_type(kind: pa.DataType) -> pa.DataType:
    """The type of items in a result: text as bytes, since Spark's need not be UTF-8."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return pa.binary() if text else kind


def shown_items(items: pa.Array, order: Any) -> list[Any]:
    """The items in this order, as values of the type in which results have them."""
    taken = items.take(pa.array(order))
    taken = taken.cast(shown_type(taken.type))
    # Spark knows times for which Python has none.
    return list(taken) if pa.types.is_temporal(taken.type) else list(taken.to_pylist())


def ranked(items: pa.Array, scores: Any) -> Any:
    """The order by falling score; equals by item, nulls last, so that it is always the same."""
    import pyarrow.compute as pc

    table = pa.table({"score": scores, "item": items})
    keys = [("score", "descending"), ("item", "ascending")]
    return pc.sort_indices(table, sort_keys=keys).to_numpy().astype(np.int64)
