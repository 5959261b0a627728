"""The Distribution Observer: how even the work was, per run and per micro-batch.

Workers count for themselves and report with their last partial; only the last attempt of a worker
counts, so a retried stage changes nothing (see `report.task`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from skewless import measures
from skewless.arguments import number
from skewless.errors import SkewlessError
from skewless.live import Page, PlanFacts
from skewless.spark.observe.live_page import LivePage
from skewless.spark.observe.observed import Observed
from skewless.spark.observe.prometheus import Endpoint
from skewless.spark.report.source import gathered
from skewless.spark.report.task import WorkerReport, per_worker, worker_reports

_POLL_S = 0.05
_REST = 50  # of its time the observer asks at most one part in so many
RECORDS_KEPT = 10_000
AWAITED_KEPT = 1_000
SCHEMA = (
    "scheme string, workers int, run string, batch long, ended_s double, messages long, "
    "loads array<long>, imbalance double, stddev double, stddev_percent double, partials long, "
    "keys long, replication double, seconds double, messages_per_second double, "
    "busy_s array<double>, flushes long"
)


@dataclass(frozen=True)
class Record:
    """How even one run or micro-batch was.

    run: the query's run, or the name of a batch job
    batch: the number of the micro-batch; None for a batch job
    ended_s: when the last worker ended, in seconds since 1970
    loads: messages per worker; busy_s: seconds in which each of them folded
    imbalance, stddev, stddev_percent: of the loads, as in `skewless.measures`
    partials: what the workers handed to the merge: distinct pairs of key and worker, and more
        than that only if workers flushed partials early (`flushes` times)
    keys: distinct keys of this run or batch, as Spark counted them at the merge (late ones, which
        it drops, are left out); None if the query keeps other state besides
    replication: partials ÷ keys, the workers per key
    seconds: how long it took: a micro-batch from trigger to commit, which is the latency of its
        messages; a batch job from the first worker's start to the last one's end
    """

    scheme: str
    workers: int
    run: str
    batch: int | None
    ended_s: float
    messages: int
    loads: list[int]
    imbalance: float
    stddev: float
    stddev_percent: float
    partials: int
    keys: int | None
    replication: float | None
    seconds: float
    messages_per_second: float
    busy_s: list[float]
    flushes: int

    @property
    def max_over_mean(self) -> float:
        """The load of the busiest worker ÷ the mean; 1 is perfectly even."""
        return 1 + self.workers * self.imbalance


class Observer:
    """Records how even the work is: pass it to `group(…, observer=…)`.

    Afterwards, ask for its records, read its log, scrape it with Prometheus or look at its page. It
    keeps the last 10,000 records; the log has them all. Of the results on which no action has run
    yet, it waits for the last 1,000.

    log: a file to which each record is added as a line of JSON
    port: serve the newest record to Prometheus on 127.0.0.1 at this port; 0 takes a free one
    page: show what happens on a live page for a browser, served on 127.0.0.1 at this port; 0 takes
        a free one. Observers with one port, or with one `skewless.live.Page`, share a page
    """

    def __init__(
        self,
        log: str | Path | None = None,
        port: int | None = None,
        page: Page | int | None = None,
    ) -> None:
        self._records: deque[Record] = deque(maxlen=RECORDS_KEPT)
        self._lock = threading.Lock()
        self._awaited: deque[_Awaited] = deque(maxlen=AWAITED_KEPT)
        self._asks = threading.Lock()
        self._asking: threading.Thread | None = None
        self._closed = False  # then only what is asked for is awaited
        self._live: LivePage | None = None
        if not isinstance(log, str | os.PathLike | None):
            raise SkewlessError(f"The log is the path of a file, not {log!r}.")
        self._log = None if log is None else Path(log)
        if self._log is not None:
            _check_log(self._log)
        self._endpoint = None if port is None else Endpoint(port)
        try:
            self._live = None if page is None else LivePage(page)
        except SkewlessError:
            self.close()
            raise

    def __repr__(self) -> str:
        page = "" if self.page is None else f", page {self.page.url}"
        return f"Observer({len(self._records):,} records{page})"

    @property
    def port(self) -> int | None:
        """Where Prometheus finds the endpoint, if there is one."""
        return None if self._endpoint is None else self._endpoint.port

    @property
    def page(self) -> Page | None:
        """The live page, if there is one."""
        return None if self._live is None else self._live.page

    def records(self, timeout_s: float = 0.0) -> list[Record]:
        """The records so far, the last 10,000 of them.

        timeout_s: how long to wait for batch jobs that run meanwhile; a grouping whose action never
        runs counts as one. What has ended is known at once
        """
        ends_s = time.monotonic() + number("The timeout", timeout_s)
        while self._ask() and time.monotonic() < ends_s:
            time.sleep(_POLL_S)
        with self._lock:
            return list(self._records)

    def frame(self, spark: SparkSession) -> DataFrame:
        """The records so far as a DataFrame."""
        if not hasattr(spark, "createDataFrame"):
            raise SkewlessError(f"A frame is made with a Spark session, not with {spark!r}.")
        rows = [dataclasses.astuple(record) for record in self.records()]
        return spark.createDataFrame(rows, SCHEMA)

    def close(self) -> None:
        """Stop serving and waiting; a page that others share or that was handed in stays."""
        self._closed = True
        if self._endpoint is not None:
            self._endpoint.close()
        if self._live is not None:
            self._live.close()

    def query_is(self, run: str, state: str, why: str | None = None) -> None:
        """A query waits for data, has ended, or has failed and why: for the page."""
        if self._live is not None:
            self._live.page.tell(run, state, why)

    def add(self, record: Record) -> None:
        """Keep, log and serve a record."""
        with self._lock:
            self._records.append(record)
            if self._log is not None:
                with self._log.open("a") as log:
                    log.write(json.dumps(dataclasses.asdict(record)) + "\n")
            if self._endpoint is not None:
                self._endpoint.show(record)

    def saw_batch(
        self,
        scheme: str,
        workers: int,
        progress: Any,
        seen: list[WorkerReport],
        states_besides: int = 0,
        plan: PlanFacts | None = None,
    ) -> None:
        """A micro-batch is done.

        states_besides: how many states it wrote that are of no key
        plan: what its plan says of single keys
        """
        if not seen:
            return
        states = progress.stateOperators
        keys = int(states[0].numRowsUpdated) - states_besides if len(states) == 1 else None
        seconds = progress.durationMs["triggerExecution"] / 1000
        run = str(progress.runId)
        record = make_record(scheme, workers, run, progress.batchId, seen, keys, seconds)
        self.add(record)
        if self._live is not None:
            self._live.show(record, seen, plan, progress.name)

    def watch(
        self,
        scheme: str,
        workers: int,
        run: str,
        partials: Observation,
        results: Observation,
        plan: PlanFacts | None = None,
    ) -> None:
        """Await a batch job: Spark tells only once its action has run, if it ever does.

        Of an action that failed before any result came, and of one without rows, classic Spark
        tells the same: nothing was seen. Neither is recorded.
        """
        with self._lock:
            observed = Observed(partials, results)
            self._awaited.append(_Awaited(scheme, workers, run, observed, plan))
            tells = any(each is not None for each in (self._log, self._endpoint, self._live))
            if tells and not self._closed and (self._asking is None or not self._asking.is_alive()):
                self._asking = threading.Thread(
                    target=self._keep_asking, name="skewless-observer", daemon=True
                )
                self._asking.start()

    def _keep_asking(self) -> None:
        """For the log and whoever is served, where nobody asks: ask until no job is awaited."""
        while True:
            start_s = time.perf_counter()
            self._ask()
            with self._lock:
                if not self._awaited or self._closed:
                    self._asking = None
                    return
            time.sleep(max(_POLL_S, _REST * (time.perf_counter() - start_s)))

    def _ask(self) -> bool:
        """Record the jobs that Spark has told of since; are others still awaited?"""
        with self._asks:
            for job in list(self._awaited):
                try:
                    found = job.record()
                except Exception:  # the session ended: there is nothing to tell
                    told = logging.getLogger(__name__)
                    told.debug("Run %s was not observed.", job.run, exc_info=True)
                    found = []
                if found is not None:
                    with self._lock, contextlib.suppress(ValueError):  # forgotten meanwhile
                        self._awaited.remove(job)
                    for record, seen in found:
                        self.add(record)
                        if self._live is not None:
                            self._live.show(record, seen, job.plan)
            return bool(self._awaited)


def check_observer(observer: Any) -> None:
    """Refuse what is neither an observer nor None."""
    if not isinstance(observer, Observer | None):
        raise SkewlessError(
            "observer= takes a skewless.spark.Observer, such as Observer(page=0), not "
            f"{observer!r}."
        )


def _check_log(log: Path) -> None:
    """Refuse a log that cannot be written to: later nobody would be told."""
    if not log.parent.is_dir():
        raise SkewlessError(
            f"The log '{log}' is in a folder that does not exist: make the folder first."
        )
    try:
        if log.is_dir():
            raise SkewlessError(f"The log '{log}' is a folder: give the name of a file.")
        log.open("a").close()
    except OSError as error:
        raise SkewlessError(
            f"The log '{log}' cannot be written to ({error.strerror}): give another file."
        ) from error


@dataclass(frozen=True, eq=False)
class _Awaited:
    """A batch job of which Spark has not told yet."""

    scheme: str
    workers: int
    run: str
    observed: Observed
    plan: PlanFacts | None

    def record(self) -> list[tuple[Record, list[WorkerReport]]] | None:
        """The record and what it is made of, or nothing if nothing was seen.

        None as long as no action has ended.
        """
        found = self.observed.seen()
        if found is None:
            return None
        at_workers, at_merge = found
        seen = worker_reports(gathered(at_workers or None))
        keys = int(at_merge.get("keys", 0))
        if not seen or not keys:
            return []
        seconds = max(r.ended_s for r in seen) - min(r.started_s for r in seen)
        record = make_record(self.scheme, self.workers, self.run, None, seen, keys, seconds)
        return [(record, seen)]


def counted_keys() -> Any:
    """The aggregate that counts the rows of a result."""
    return F.count(F.lit(1)).alias("keys")


def make_record(
    scheme: str,
    workers: int,
    run: str,
    batch: int | None,
    seen: list[WorkerReport],
    keys: int | None,
    seconds: float,
) -> Record:
    """Measure what the workers reported."""
    loads = per_worker(seen, "messages", workers)
    messages = int(loads.sum())
    partials = sum(report.partials for report in seen)
    return Record(
        scheme=scheme,
        workers=workers,
        run=run,
        batch=batch,
        ended_s=max((report.ended_s for report in seen), default=0.0),
        messages=messages,
        loads=[int(load) for load in loads],
        imbalance=measures.imbalance(loads),
        stddev=measures.stddev(loads),
        stddev_percent=measures.stddev_percent(loads),
        partials=partials,
        keys=keys,
        replication=None if keys is None else measures.replication(partials, keys),
        seconds=seconds,
        messages_per_second=messages / seconds if seconds > 0 else 0.0,
        busy_s=per_worker(seen, "busy_s", workers).tolist(),
        flushes=sum(report.flushes for report in seen),
    )
