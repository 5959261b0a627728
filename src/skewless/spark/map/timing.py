"""What a task learns while it runs a user's function: what the rows of each key cost.

The function gets its rows in small slices, and the time from handing a slice over until it asks for
the next is what the slice cost. Time before the first is asked for (loading a model), after the
last, and while Spark takes the results is nobody's. Slices are made of one key where they can be:
rows of an Arrow batch are ordered by cost and key, and a slice of several keys shares its time
equally. A slice takes about SLICE_S, so that handing it over costs little: a row that takes longer
is a slice by itself, and a function that takes next to no time gets whole batches, in which all
rows cost the same.

Rows that are expected to be cheap go before expensive ones: a row waits for all before it at its
worker, so that is the order in which rows wait least on average (Smith's rule), and the worker is
done no later.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.schemes.proactive.scheduler import ProactivePlan
from skewless.schemes.proactive.scheme import ProactiveReport
from skewless.sketch.count_min import CountMin, add_all
from skewless.spark.report.arrival import arrived

SLICE_S = 0.001
_ROW, _IDENTITY, _KEY, _COST = range(4)  # places; the worker comes last
_GROWTH = 2  # a slice has at most that many times the rows of the one before
_FADING = 0.75  # what a slice counts for the time of a row, each time that another follows
_LEAST_S = 1e-9  # no row is free: the greedy choice would send all free rows to one worker


class KeyCosts(NamedTuple):
    """The rows of each key and the seconds that they took, in the matrices of a plan."""

    rows: CountMin
    costs_s: CountMin

    @classmethod
    def none(cls, plan: ProactivePlan) -> KeyCosts:
        """Nothing learned."""
        shape = plan.known.shape[:2]
        return cls(*(CountMin(np.zeros(shape), plan.hashes, np.zeros(1)) for _ in cls._fields))

    def add(self, identities: npt.NDArray[np.uint64], costs_s: npt.NDArray[np.float64]) -> None:
        """Count these rows and what each cost."""
        if identities.size:
            add_all(self.rows, identities, np.ones(identities.size))
            add_all(self.costs_s, identities, costs_s)

    def report(self) -> ProactiveReport:
        """What the driver is told."""
        return ProactiveReport(np.stack([self.rows.counts, self.costs_s.counts], axis=-1))


class Watch:
    """Sees a function at work: where, on which rows, how many it has done, and in what time."""

    def __init__(self) -> None:
        self.worker = 0
        self.keys: pa.Array | None = None  # of the slice that the function has in hand
        self.rows_done = 0
        self.busy_s = 0.0
        self._given_s = 0.0
        self._away_s = 0.0

    def gives(self, keys: pa.Array) -> None:
        """The function gets rows of these keys."""
        self.keys = keys
        self._given_s = self._now_s()

    def took(self, rows: int) -> float:
        """It asks for the next: the seconds that these rows took."""
        seconds = self._now_s() - self._given_s
        self.keys = None
        self.rows_done += rows
        self.busy_s += seconds
        return seconds

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """No time passes while Spark takes results."""
        left_s = time.perf_counter()
        yield
        self._away_s += time.perf_counter() - left_s

    def _now_s(self) -> float:
        return time.perf_counter() - self._away_s


class Pace(NamedTuple):
    """How many rows the next slice has, by the time that rows took of late."""

    slice_rows: int = 1
    recent_s: float = 0.0
    recent_rows: float = 0.0

    def after(self, rows: int, row_s: float) -> Pace:
        """The pace once these rows took so much each."""
        recent_s = _FADING * self.recent_s + row_s * rows
        recent_rows = _FADING * self.recent_rows + rows
        fitting = max(1, round(SLICE_S * recent_rows / recent_s))
        return Pace(min(fitting, self.slice_rows * _GROWTH), recent_s, recent_rows)


def slices(
    batches: Iterator[pa.RecordBatch],
    columns: Sequence[str],
    by_cost: bool,
    watch: Watch,
    learned: KeyCosts | None,
) -> Generator[pa.RecordBatch, None, None]:
    """The user's columns, slice by slice, under the watch, which also learns the worker."""
    watch.worker, batches = arrived(batches)
    pace = Pace()
    for batch in batches:
        rows, keys, identities = _in_order(batch, columns, by_cost)
        changes = (np.flatnonzero(identities[1:] != identities[:-1]) + 1).tolist()
        costs_s = np.empty(identities.size)
        done = 0
        try:
            while done < identities.size:
                end = _slice_end(done, pace.slice_rows, changes, identities.size)
                count = end - done
                watch.gives(keys.slice(done, count))
                yield rows.slice(done, count)
                row_s = max(watch.took(count) / count, _LEAST_S)
                pace = pace.after(count, row_s)
                costs_s[done:end] = row_s
                done = end
        finally:  # a function need not take all rows
            if learned is not None:
                learned.add(identities[:done], costs_s[:done])


def _in_order(
    batch: pa.RecordBatch, columns: Sequence[str], by_cost: bool
) -> tuple[pa.RecordBatch, pa.Array, npt.NDArray[np.uint64]]:
    """The user's columns, the keys and their identities, by expected cost and key if asked for."""
    identities = batch.column(_IDENTITY).to_numpy().view(np.uint64)
    if by_cost:
        order = np.lexsort((identities, batch.column(_COST).to_numpy()))
        batch, identities = batch.take(pa.array(order)), identities[order]
    packed = pa.RecordBatch.from_struct_array(batch.column(_ROW))
    return packed.rename_columns(list(columns)), batch.column(_KEY), identities


def _slice_end(start: int, rows: int, changes: list[int], most: int) -> int:
    """Where a slice ends: where the key changes, if that leaves it at least half as long."""
    end = min(start + rows, most)
    before = bisect_right(changes, end) - 1
    change = changes[before] if before >= 0 else 0
    return change if change - start > rows // 2 else end
