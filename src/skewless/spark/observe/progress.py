"""What Spark tells the driver after each micro-batch, handed to whoever asked by a metric's name.

One listener serves a session: listeners cannot be told apart later, and Spark calls them one after
the other. It works on Spark Connect too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from skewless.spark.report.source import gathered

Handler = Callable[[Any], None]
KEPT = 8
AWAITED_KEPT = 1_000
_LISTENERS: WeakKeyDictionary[SparkSession, _Listener] = WeakKeyDictionary()


class _Listener(StreamingQueryListener):
    """Calls handlers while their queries run, and forgets all but the last `KEPT` that ended.

    Those few are for a DataFrame that is started again, as after a failure: Spark tells only with
    the first progress which metrics a query observes. For the same reason a DataFrame that is never
    started cannot be told from one that will be: of those the last `AWAITED_KEPT` are kept.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self._running: dict[str, set[str]] = {}  # the metrics that each run observed so far
        self._ended: dict[str, None] = {}  # metrics that no query observes now, oldest first
        self._awaited: dict[str, None] = {}  # metrics that no query observed yet, oldest first

    def expect(self, metric: str, handler: Handler) -> None:
        """Call the handler with the progress of each batch that observed this metric."""
        self.handlers[metric] = handler
        self._awaited[metric] = None
        for old in list(self._awaited)[:-AWAITED_KEPT]:
            # Spark calls from a thread of its own, and may have seen to this one meanwhile.
            if self._awaited.pop(old, old) is None:
                self.handlers.pop(old, None)

    def onQueryProgress(self, event: Any) -> None:
        for metric in event.progress.observedMetrics:
            handler = self.handlers.get(metric)
            if handler is None:
                continue
            self._running.setdefault(str(event.progress.runId), set()).add(metric)
            self._ended.pop(metric, None)
            self._awaited.pop(metric, None)
            try:
                handler(event.progress)
            except Exception:
                # The stream itself is unharmed: it goes on with the plan that it has.
                logging.getLogger(__name__).exception(
                    "What batch %s reported could not be used.", event.progress.batchId
                )

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        ended = self._running.pop(str(event.runId), set())
        self._ended |= dict.fromkeys(ended.difference(*self._running.values()))
        for metric in list(self._ended)[:-KEPT]:
            del self._ended[metric]
            self.handlers.pop(metric, None)


def after_each_batch(spark: SparkSession, metric: str, handler: Handler) -> None:
    """Call the handler with the progress of each batch that observed this metric."""
    listener = _LISTENERS.get(spark)
    if listener is None:
        listener = _LISTENERS[spark] = _Listener()
        spark.streams.addListener(listener)
    listener.expect(metric, handler)


def with_sums(df: DataFrame, metric: str, sums: Mapping[str, str]) -> DataFrame:
    """The rows of a stream; the progress of each micro-batch holds the sums of SQL expressions."""
    return df.observe(metric, *(F.expr(f"sum({sql})").alias(name) for name, sql in sums.items()))


def reports(progress: Any, metric: str) -> list[str]:
    """The reports that a batch's tasks sent under this name."""
    return gathered(progress.observedMetrics.get(metric))
