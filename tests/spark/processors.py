"""Stateful processors, in a module that Spark's Python workers can import."""

from __future__ import annotations

import time

import pandas as pd
from pyspark import TaskContext

from skewless.spark.input.version import StatefulProcessor


class CountPerKey(StatefulProcessor or object):  # which Spark before 4.0 has not
    """Messages per key that this worker saw since the stream began."""

    SCHEMA = "worker int, at int, w string, count long"

    def init(self, handle):
        self.counts = handle.getMapState("counts", "w string", "count long")

    def handleInputRows(self, key, rows, timerValues):
        for frame in rows:
            assert list(frame.columns) == ["w"]
            for word, more in frame.groupby("w").size().items():
                held = self.counts.getValue((word,))
                self.counts.updateValue((word,), ((held[0] if held else 0) + int(more),))
        at = TaskContext.get().partitionId()
        found = [(key[0], at, w[0], n[0]) for w, n in self.counts.iterator()]
        yield pd.DataFrame(found, columns=["worker", "at", "w", "count"])

    def close(self):
        pass


class NamelessCountPerKey(CountPerKey):
    """The same; its columns have no names, so Spark goes by their places."""

    def handleInputRows(self, key, rows, timerValues):
        for frame in super().handleInputRows(key, rows, timerValues):
            yield pd.DataFrame(frame.to_numpy(dtype=object))


class SlowCountPerKey(CountPerKey):
    """The same, taking time: each message sleeps a little, so that a stopped process falls behind.

    slow: a worker that takes three times as long for a message, or None
    """

    def __init__(self, delay_ms, slow=None):
        self.delay_ms, self.slow = delay_ms, slow

    def handleInputRows(self, key, rows, timerValues):
        delay_s = self.delay_ms / 1000 * (3 if key[0] == self.slow else 1)
        yield from super().handleInputRows(key, self.slept(rows, delay_s), timerValues)

    def slept(self, rows, delay_s):
        for frame in rows:
            for _ in range(len(frame)):
                time.sleep(delay_s)
            yield frame
