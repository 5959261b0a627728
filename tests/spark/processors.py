"""A stateful processor, in a module that Spark's Python workers can import."""

from __future__ import annotations

import pandas as pd
from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessor


class CountPerKey(StatefulProcessor):
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
