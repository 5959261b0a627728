"""What is kept of a run: a histogram of latencies, and every worker's state through time.

Neither grows with the stream. The histogram has 64 buckets per doubling, so a percentile (the
middle of its bucket) is within 0.8 % of the true one. Checkpoints are evenly spaced; when there are
too many, every second one is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skewless.compiled import compiled
from skewless.schemes.api import F64, I64

_CHECKPOINTS = 512
_KEPT_BITS = 46  # of a float's 52 fraction bits, those that do not tell buckets apart


@compiled
def _count(bits: I64, histogram: I64) -> None:
    for i in range(bits.size):
        histogram[bits[i] >> _KEPT_BITS] += 1


class LatencyHistogram:
    """Latencies by the leading bits of their floating-point numbers."""

    def __init__(self) -> None:
        self._histogram = np.zeros(1 << (63 - _KEPT_BITS), np.int64)
        self.most = 0.0

    def add(self, latencies: F64) -> None:
        """Count these; none is negative."""
        _count(latencies.view(np.int64), self._histogram)
        self.most = max(self.most, float(latencies.max()))

    def percentile(self, share: float) -> float:
        """The latency that this share of the messages does not exceed."""
        reached = np.cumsum(self._histogram)
        bucket = int(np.searchsorted(reached, share * reached[-1]))
        edges = np.array([bucket << _KEPT_BITS, (bucket + 1) << _KEPT_BITS]).view(np.float64)
        return min(float(edges.mean()), self.most)


@dataclass(frozen=True)
class Series:
    """Every worker at evenly spaced checkpoints; sums run from the start of the stream."""

    messages: I64  # [c]
    times: F64  # [c]
    queues: I64  # [c, W] messages waiting or in service
    served: I64  # [c, W] messages assigned
    busy: F64  # [c, W] time spent serving
    latencies: F64  # [c, W] summed over the messages assigned

    def queue_spreads(self) -> I64:
        """At each checkpoint the longest minus the shortest queue."""
        return np.asarray(self.queues.max(axis=1) - self.queues.min(axis=1))

    def utilisations(self) -> F64:
        """Between checkpoints, the share of the time each worker spent serving; [c, W]."""
        elapsed = np.maximum(np.diff(self.times, prepend=0.0), 1e-300)[:, None]
        return np.asarray(np.diff(self.busy, axis=0, prepend=0.0) / elapsed)

    def mean_latencies(self) -> F64:
        """Between checkpoints, each worker's mean latency, 0 where nothing came; [c, W]."""
        messages = np.diff(self.served, axis=0, prepend=0)
        spent = np.diff(self.latencies, axis=0, prepend=0.0)
        return np.asarray(spent / np.maximum(messages, 1))

    def late_utilisations(self, share: float = 0.25) -> F64:
        """Each worker's utilisation over the last part of the stream; [W]."""
        first = max(0, int(self.times.size * (1 - share)) - 1)
        elapsed = max(float(self.times[-1] - self.times[first]), 1e-300)
        return np.asarray((self.busy[-1] - self.busy[first]) / elapsed)


class Row(NamedTuple):
    """The workers at one moment; the fields of `Series`, for one checkpoint."""

    messages: int
    now: float
    queues: I64  # [W]
    served: I64  # [W]
    busy: F64  # [W]
    latencies: F64  # [W]


class SeriesRecorder:
    """Collects a bounded number of checkpoints of a stream of any length."""

    def __init__(self, messages: int | None) -> None:
        self.interval = max(64, -(-(messages or 0) // _CHECKPOINTS))
        self._rows: list[Row] = []

    def until_next(self, messages: int) -> int:
        """Messages until the next checkpoint."""
        return self.interval - messages % self.interval

    def add(self, row: Row) -> None:
        """Record the state at a checkpoint."""
        if len(self._rows) == _CHECKPOINTS:
            self._rows = self._rows[1::2]
            self.interval *= 2
        if row.messages % self.interval == 0:
            self._rows.append(row)

    def series(self, last: Row, scale: float) -> Series:
        """All checkpoints and the last moment, with times multiplied by the scale."""
        rows = [row for row in self._rows if row.messages < last.messages]
        messages, times, queues, served, busy, latencies = zip(*rows, last, strict=True)
        return Series(
            np.array(messages),
            np.array(times) * scale,
            np.array(queues),
            np.array(served),
            np.array(busy) * scale,
            np.array(latencies) * scale,
        )
