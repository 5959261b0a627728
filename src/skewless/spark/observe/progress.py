"""What Spark tells the driver after each micro-batch, handed to whoever asked by a metric's name.

One listener serves a session: listeners cannot be told apart later, and Spark calls them one after
the other. It works on Spark Connect too.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

from skewless.errors import SkewlessError
from skewless.spark.report.source import gathered

Handler = Callable[[Any], None]
Told = Callable[[str, str, str | None], None]  # a run, its state, and why it failed
KEPT = 100
AWAITED_KEPT = 1_000
_RAISED = re.compile(
    r"(?!org\.|java\.|scala\.)[A-Za-z_][\w.]*(Error|Exception|Warning|Interrupt)\b: "
)
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
        self._told: dict[str, Told] = {}  # by metric: who wants to know the state of its query
        self._strangers: set[str] = set()  # runs that go on without any of our metrics

    def expect(self, metric: str, handler: Handler, told: Told | None = None) -> None:
        """Call the handler with the progress of each batch that observed this metric.

        told: is called when the query waits for data, ends or fails
        """
        self.handlers[metric] = handler
        if told is not None:
            self._told[metric] = told
        self._awaited[metric] = None
        for old in list(self._awaited)[:-AWAITED_KEPT]:
            # Spark calls from a thread of its own, and may have seen to this one meanwhile.
            if self._awaited.pop(old, old) is None:
                self._forget(old)

    def _forget(self, metric: str) -> None:
        self.handlers.pop(metric, None)
        self._told.pop(metric, None)

    def _tell(self, metrics: Iterable[str], run: str, state: str, why: str | None = None) -> None:
        for metric in sorted(metrics):
            if metric in self._told:
                self._told[metric](run, state, why)

    def onQueryProgress(self, event: Any) -> None:
        if self.handlers.keys().isdisjoint(event.progress.observedMetrics):
            self._strangers.add(str(event.progress.runId))
        for metric in event.progress.observedMetrics:
            handler = self.handlers.get(metric)
            if handler is None:
                continue
            self._running.setdefault(str(event.progress.runId), set()).add(metric)
            self._ended.pop(metric, None)
            self._awaited.pop(metric, None)
            unused = "What batch %s reported could not be used"
            batch, log = event.progress.batchId, logging.getLogger(__name__)
            # The stream itself is unharmed: it goes on with the plan that it has.
            try:
                handler(event.progress)
            except (SkewlessError, OSError) as error:  # as where its folder was deleted meanwhile
                log.warning(f"{unused}: %s", batch, error)
            except Exception:
                log.exception(f"{unused}.", batch)

    def onQueryStarted(self, event: Any) -> None:
        pass

    def onQueryIdle(self, event: Any) -> None:
        run = str(event.runId)
        self._tell(self._running.get(run, ()), run, "waiting")

    def onQueryTerminated(self, event: Any) -> None:
        run, why = str(event.runId), getattr(event, "exception", None)
        known = self._running.get(run)
        if known is None and why and run not in self._strangers:
            # It failed in its first batch, before which nobody can say what it observes.
            self._tell(self._awaited, run, "failed", sentence_of(why))
        elif known is not None:
            state = "failed" if why else "ended"
            self._tell(known, run, state, sentence_of(why) if why else None)
        self._strangers.discard(run)
        ended = self._running.pop(run, set())
        self._ended |= dict.fromkeys(ended.difference(*self._running.values()))
        for metric in list(self._ended)[:-KEPT]:
            del self._ended[metric]
            self._forget(metric)


def after_each_batch(
    spark: SparkSession, metric: str, handler: Handler, told: Told | None = None
) -> None:
    """Call the handler with the progress of each batch that observed this metric.

    told: is called when the query waits for data, ends or fails
    """
    listener = _LISTENERS.get(spark)
    if listener is None:
        listener = _LISTENERS[spark] = _Listener()
        spark.streams.addListener(listener)
    listener.expect(metric, handler, told)


def with_sums(df: DataFrame, metric: str, sums: Mapping[str, str]) -> DataFrame:
    """The rows of a stream; the progress of each micro-batch holds the sums of SQL expressions."""
    return df.observe(metric, *(F.expr(f"sum({sql})").alias(name) for name, sql in sums.items()))


def reports(progress: Any, metric: str) -> list[str]:
    """The reports that a batch's tasks sent under this name."""
    return gathered(progress.observedMetrics.get(metric))


def sentence_of(failure: str) -> str:
    """What went wrong, out of the text with which Spark ends a query: the line that says so.

    Of a failure in Python that is the last line of the innermost traceback; else the first line.
    """
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    if "Traceback (most recent call last)" in failure and raised:
        return raised[-1].removeprefix("skewless.errors.SkewlessError: ")
    return lines[0] if lines else "Spark does not say why."
