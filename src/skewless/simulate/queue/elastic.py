"""What a change of the workers did: which keys moved, and how long queues took to recover.

A key has moved if, after the change, it came to a worker that it had not been on before: that
worker needs its state. Judged over the same number of messages before and after, of keys that came
in both. The queues have recovered when the fullest is at most one and a half times as long as it
was in 90 % of the time before the change, and one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skewless.schemes.api import I32, U64
from skewless.simulate.queue.series import Series

WINDOW = 100_000  # messages on either side of a change
_AS_LONG, _AND = 1.5, 1.0
_MOSTLY = 90.0  # per cent of the time: a queue may be long by chance, or by a change before


class Changed(NamedTuple):
    """One change of the workers; the fields of `changes` in JSON.

    keys_moved: the share of keys; recovery: time, None if it was not over by the next change
    """

    message: int
    workers: int
    keys_moved: float
    recovery: float | None


class MoveRecorder:
    """Keeps the routes of the messages around each change."""

    def __init__(self, changes: Sequence[tuple[int, int]]) -> None:
        """`changes`: (message, workers from then on)."""
        self._changes = list(changes)
        self._kept: list[tuple[int, U64, I32]] = []

    def add(self, first: int, keys: U64, workers: I32) -> None:
        """Take in the routes of consecutive messages, from number `first` on."""
        for message, _ in self._changes:
            low = max(message - WINDOW, first)
            high = min(message + WINDOW, first + keys.size)
            if low < high:
                part = slice(low - first, high - first)
                self._kept.append((low, keys[part].copy(), workers[part].copy()))

    def changed(self, series: Series) -> list[Changed]:
        """Each change, with what came of it."""
        found = []
        for i, (message, workers) in enumerate(self._changes):
            end = self._changes[i + 1][0] if i + 1 < len(self._changes) else int(1e18)
            recovery = _recovery(series, message, end)
            found.append(Changed(message, workers, self._moved(message), recovery))
        return found

    def _moved(self, message: int) -> float:
        before = self._pairs(message - WINDOW, message)
        after = self._pairs(message, message + WINDOW)
        both = np.intersect1d(before["key"], after["key"])
        new = np.setdiff1d(after, before)
        moved = np.intersect1d(new["key"], both)
        return moved.size / both.size if both.size else 0.0

    def _pairs(self, low: int, high: int) -> Any:
        """The distinct pairs of key and worker among these messages."""
        kind = np.dtype([("key", np.uint64), ("worker", np.int32)])
        parts = [np.empty(0, kind)]
        for first, keys, workers in self._kept:
            part = slice(max(0, low - first), max(0, high - first))
            pairs = np.empty(keys[part].size, kind)
            pairs["key"], pairs["worker"] = keys[part], workers[part]
            parts.append(pairs)
        return np.unique(np.concatenate(parts))


def _recovery(series: Series, message: int, end: int) -> float | None:
    fullest = series.queues.max(axis=1)
    before = series.messages <= message
    usual = float(np.percentile(fullest[before], _MOSTLY)) if before.any() else 0.0
    since = (series.messages > message) & (series.messages <= end)
    if not since.any():
        return None
    at = np.interp(message, series.messages, series.times)
    late = fullest[since] > _AS_LONG * usual + _AND
    if not late.any():
        return 0.0
    over = np.flatnonzero(~late & (np.cumsum(late) > 0))
    return float(series.times[since][over[0]] - at) if over.size else None
