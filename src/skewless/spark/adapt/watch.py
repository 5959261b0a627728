"""What is observed of one keyed computation, and who is told."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from skewless.live import PlanFacts
from skewless.spark.adapt.control import Control
from skewless.spark.adapt.planned import plan_facts
from skewless.spark.adapt.plans import StreamFolder
from skewless.spark.input.version import to_partitions
from skewless.spark.observe.observer import Observer, counted_keys
from skewless.spark.observe.progress import after_each_batch, reports
from skewless.spark.report.source import reports_of
from skewless.spark.report.task import worker_reports
from skewless.spark.routing.route import row_by_row


def sole_operator(rows: DataFrame, folder: StreamFolder) -> DataFrame:
    """What an operator with this folder gives; a query with a second one is refused.

    Nothing else knows which operators end up in one query. Spark does, and it refuses a query that
    observes two things by one name before any job starts, with that name in its error. One operator
    that a query has twice, as in a self-join, is one thing.
    """
    name = f"skewless: only one operator of a query may have the checkpoint '{folder.checkpoint}'"
    return rows.observe(name, F.count(F.lit(1)).alias("rows"))


class Watch:
    """Puts reports of sources and workers into the plan of a query, and passes them on."""

    def __init__(
        self,
        scheme: str,
        workers: int,
        control: Control | None,
        observer: Observer | None,
        plan: PlanFacts | None = None,
    ) -> None:
        self.scheme, self.workers = scheme, workers
        self.control, self.observer = control, observer
        self._plan = plan  # of a computation whose plan does not change
        self.run = uuid.uuid4().hex[:12]
        self._states_besides = 0
        self._partials = Observation(f"skewless-workers-{self.run}")

    @property
    def names_keys(self) -> bool:
        """Do the workers report their hottest keys by name? Only a page shows them."""
        return self.observer is not None and self.observer.page is not None

    @property
    def _workers_metric(self) -> str:
        return f"skewless-workers-{self.run}"

    @property
    def _sources_metric(self) -> str:
        return f"skewless-sources-{self.run}"

    def routed(self, rows: DataFrame, identity: Column, control: Control, column: str) -> DataFrame:
        """The rows with a column for their worker, by the plan of their micro-batch."""
        routed = row_by_row(rows).withColumn(column, control.routed(identity))
        seen = routed.observe(self._sources_metric, reports_of(f"{column}.report"))
        return seen.withColumn(column, F.col(f"{column}.worker"))

    def placed(self, rows: DataFrame, identity: Column, control: Control) -> DataFrame:
        """The rows on the partitions of their workers, by the plan of their micro-batch."""
        sent = self.routed(rows, identity, control, "worker")
        return to_partitions(sent, self.workers, F.col("worker")).drop("worker")

    def told(self, folded: DataFrame, states_besides: int) -> DataFrame:
        """What the workers hand to the merge; their reports, in the last column, are passed on.

        states_besides: how many rows of a stream's state are not of a key
        """
        self._states_besides = states_besides
        if folded.isStreaming:
            seen = self.heard(folded, "report")
        else:
            seen = folded.observe(self._partials, reports_of("report"))
        return seen.drop("report")

    def heard(self, reporting: DataFrame, column: str) -> DataFrame:
        """The rows of a stream; the workers' reports in this column are passed on by batch."""
        told = None if self.observer is None else self.observer.query_is
        after_each_batch(reporting.sparkSession, self._workers_metric, self._batch_done, told)
        return reporting.observe(self._workers_metric, reports_of(column))

    def results(self, merged: DataFrame) -> DataFrame:
        """The result of a batch job, its keys counted for the observer."""
        if self.observer is None:
            return merged
        results = Observation(f"skewless-results-{self.run}")
        seen = merged.observe(results, counted_keys())
        self.observer.watch(
            self.scheme, self.workers, self.run, self._partials, results, self._plan
        )
        return seen

    def _batch_done(self, progress: Any) -> None:
        workers = worker_reports(reports(progress, self._workers_metric))
        if self.control is not None:
            sources = reports(progress, self._sources_metric)
            self.control.learn(int(progress.batchId), sources, workers)
        if self.observer is not None:
            self.observer.saw_batch(
                self.scheme,
                self.workers,
                progress,
                workers,
                self._states_besides,
                self._plan_of(int(progress.batchId)),
            )

    def _plan_of(self, batch: int) -> PlanFacts | None:
        """What the plan of a batch says of single keys; only a page asks."""
        if self.control is None or not self.names_keys:
            return self._plan
        folder = self.control.folder
        return plan_facts(folder.scheme, folder.used(batch).plan)
