"""Stateless work whose cost depends on the content: give us a function, we even out its time.

    result = balanced_map(pages, parse, "url string, words long", key="site")

is `pages.mapInArrow(parse, …)` with the work spread by what rows of each key were seen to cost: the
expensive rows evenly over the workers, and each worker begins with its cheap ones. On a batch, a
share of the rows goes first, round robin, and is timed; the rest is planned with what that taught.
On a stream each micro-batch is planned by what the ones before it cost.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from skewless._version import __version__
from skewless.arguments import number
from skewless.errors import SkewlessError
from skewless.hashing import check_seed
from skewless.schemes import Feedback, Scheme
from skewless.schemes.api import Arrays
from skewless.spark.adapt.plans import StreamFolder, empty_report, stream_folder
from skewless.spark.adapt.watch import sole_operator
from skewless.spark.input.checks import (
    Key,
    check_scheme,
    check_server,
    free_name,
    make_plan,
    worker_count,
)
from skewless.spark.input.conform import declared_for_map, schema_of
from skewless.spark.input.version import takes_star, to_partitions
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.map.before import also_in_the_old_order
from skewless.spark.map.cost_routing import CostControl, cost_routing
from skewless.spark.map.frame import BalancedFrame, balanced_frame
from skewless.spark.map.job import REPORT, MapFunction, MapJob
from skewless.spark.map.packing import DRAWN, IDENTITY, KEY, ROW, packed
from skewless.spark.observe.observer import Observer, check_observer
from skewless.spark.observe.progress import after_each_batch, reports
from skewless.spark.report.arrival import WORKER
from skewless.spark.report.source import read_source_report, reports_of, source_reports
from skewless.spark.report.task import WorkerReport, last_attempts
from skewless.spark.routing.route import in_python, place, row_by_row

SHARE = 0.1
_COST, _SENT = "cost", "sent"
_ROUTED = "struct<worker: int, cost: double>"


@also_in_the_old_order
def balanced_map(
    df: DataFrame,
    function: MapFunction,
    schema: StructType | str,
    *,
    key: Key,
    workers: SupportsIndex | None = None,
    scheme: Scheme | str = "proactive",
    seed: int = 0,
    share: float = SHARE,
    checkpoint: str | None = None,
    observer: Observer | None = None,
) -> BalancedFrame:
    """The rows of `df.mapInArrow(function, schema)`, in any order, with the time spread evenly.

    The function must treat rows independently of each other. It gets them in slices that may be as
    short as one row, and may load what it needs before it asks for the first. If it raises an
    exception, that comes through unchanged, with a note that names the key whose rows it had.

    On a batch, a first wave of rows runs when you call this, and its results are kept until the
    end of `with balanced_map(…) as result:`, or until the result is dropped. The DataFrame is read
    twice, and must give the same rows both times. A hash of all columns but maps and variants
    decides which wave a row is in, so equal rows are in the same wave: if the key is the only
    column, a key is learned as a whole or not at all.

    function, schema: as for Spark's `mapInArrow`
    key: what the cost of a row depends on: a column's name, a Column, or a list of them
    workers: by default, as many as Spark's own shuffles have partitions
    scheme: `proactive` learns costs; any other is followed without learning, for comparison
    share: the share of a batch's rows that goes first, in (0, 1)
    checkpoint: on a stream, the folder of its checkpoint, where the costs are kept from batch to
        batch; driver and executors must share it as files. `proactive` needs it there
    observer: on a stream, is told how even each micro-batch was
    """
    check_server(df)
    if not takes_star(df):
        raise SkewlessError(
            f"balanced_map needs Spark 4.0 or later, and this is {df.sparkSession.version}: "
            "upgrade it, or use repartition and mapInArrow."
        )
    made = _check_scheme(scheme)
    count = worker_count(df, workers)
    check_workers_python(df.sparkSession, __version__)
    seed = check_seed(seed)
    plan = make_plan(made, count, seed, None)
    _check(df, function, share, made, checkpoint, observer)
    mapping = _Mapping(
        packed(df, key),
        tuple(df.columns),
        function,
        schema_of(df.sparkSession, schema),
        made,
        plan,
        count,
    )
    if df.isStreaming:
        folder = None
        if checkpoint is not None and made.learns_costs:
            folder = stream_folder(checkpoint, made, count, seed).resume()
            CostControl(folder).begin(plan)
        result, first = mapping.stream(folder, observer), None
    elif made.learns_costs:
        result, first = mapping.waves(share)
    else:
        result, first = mapping.mapped(mapping.placed()), None
    return balanced_frame(result, first)


@dataclass(frozen=True)
class _Mapping:
    """A function and the packed rows that it shall have.

    On the partition of its worker a row also says what it is expected to cost, and which worker
    that is.
    """

    rows: DataFrame
    columns: tuple[str, ...]
    function: MapFunction
    schema: StructType
    scheme: Scheme
    plan: Any
    workers: int

    def placed(self) -> DataFrame:
        """The rows on the partitions of their workers, by the first plan."""
        identity = F.col(IDENTITY)
        return self.of_unknown_cost(
            place(self.rows, identity, self.scheme, self.plan, self.workers)
        )

    def of_unknown_cost(self, placed: DataFrame) -> DataFrame:
        """The rows on the partitions of their workers, all of them taken to cost the same."""
        return self._arrived(placed, F.lit(0.0))

    def _arrived(self, placed: DataFrame, cost: Column) -> DataFrame:
        worker = F.spark_partition_id().alias(WORKER)
        return placed.select(ROW, IDENTITY, KEY, cost.alias(_COST), worker)

    def placed_by_cost(self, rows: DataFrame, source: Any) -> DataFrame:
        """The rows on the partitions of their workers, by a plan or that of the batch."""
        way = in_python(cost_routing(self.scheme, source), _ROUTED, F.col(IDENTITY))
        routed = row_by_row(rows).select(ROW, IDENTITY, KEY, way.alias(_SENT))
        placed = to_partitions(routed, self.workers, F.col(f"{_SENT}.worker"))
        return self._arrived(placed, F.col(f"{_SENT}.cost"))

    def mapped(self, placed: DataFrame) -> DataFrame:
        """The function's results, and nothing learned from it."""
        job = self._job(learning=False, reports=False)
        return placed.mapInArrow(_running(job), self.schema)

    def timed(self, placed: DataFrame) -> DataFrame:
        """The function's results, and on a task's last row its report."""
        job = self._job(learning=self.scheme.learns_costs, reports=True)
        schema = StructType([*self.schema.fields]).add(self.report, StringType())
        return placed.mapInArrow(_running(job), schema)

    @property
    def report(self) -> str:
        """The name of the column that carries reports, which no result has."""
        return free_name(self.schema.names, REPORT)

    def _job(self, learning: bool, reports: bool) -> MapJob:
        plan = self.plan if learning else None
        declared = declared_for_map(self.schema)
        by_cost = self.scheme.learns_costs
        return MapJob(self.function, self.columns, declared, by_cost, plan, reports)

    def waves(self, share: float) -> tuple[DataFrame, DataFrame]:
        """A batch: the first wave runs and teaches, the second is planned; both, and the first."""
        rows = self.rows
        first_wave = _in_first_wave(share)
        # Spark's own round robin puts a task's rows in order first: what is lost of the persisted
        # results comes out again the same, which routing in the order of arrival cannot promise.
        dealt = rows.filter(first_wave).repartition(self.workers)
        first = self.timed(self.of_unknown_cost(dealt)).persist()
        try:
            report = F.col(self.report)
            told = first.select(report).filter(report.isNotNull()).collect()
            plan = self._learned([row[0] for row in told])
            second = self.placed_by_cost(rows.filter(~first_wave), plan)
            return first.drop(self.report).union(self.mapped(second)), first
        except BaseException:  # also Ctrl-C
            first.unpersist()
            raise

    def _learned(self, told: list[str]) -> Any:
        found = source_reports(told, empty_report(self.scheme, self.plan))
        if not found:
            return self.plan
        return self.scheme.replan_from(self.plan, found, Feedback.none(self.workers))

    def stream(self, folder: StreamFolder | None, observer: Observer | None) -> DataFrame:
        """A stream: every micro-batch follows the plan that the ones before it taught."""
        placed = self.placed() if folder is None else self.placed_by_cost(self.rows, folder)
        if folder is None and observer is None:
            return self.mapped(placed)
        metric = f"skewless-map-{uuid.uuid4().hex[:12]}"
        template = empty_report(self.scheme, self.plan) if folder is not None else ()

        scheme, workers = self.scheme.spec, self.workers  # the listener is to hold no DataFrame

        def batch_done(progress: Any) -> None:
            told = reports(progress, metric)
            seen = _worker_reports(told, template)
            if folder is not None:
                CostControl(folder).learn(int(progress.batchId), told, seen)
            if observer is not None:
                observer.saw_batch(scheme, workers, progress, seen)

        state = None if observer is None else observer.query_is
        after_each_batch(self.rows.sparkSession, metric, batch_done, state)
        seen = self.timed(placed).observe(metric, reports_of(self.report)).drop(self.report)
        return seen if folder is None else sole_operator(seen, folder)


def _running(job: MapJob) -> MapFunction:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return job.run(batches)

    return run


def _worker_reports(told: list[str], template: Arrays) -> list[WorkerReport]:
    """One report per worker, of its last attempt."""
    facts = (read_source_report(text, template)[0] for text in told)
    return last_attempts(WorkerReport(*fact["worker"]) for fact in facts)


def _in_first_wave(share: float) -> Column:
    """Whether 31 bits of what was drawn for the row, of no other use, are below the share."""
    # A condition of which Spark cannot know that it is one of the row alone: else its optimiser
    # infers it for all names that a column goes by, which takes a minute for 300 of them.
    drawn = F.when(F.spark_partition_id() >= 0, F.shiftrightunsigned(DRAWN, 33))
    return drawn < F.lit(int(share * 2**31))


def _check_scheme(scheme: Scheme | str) -> Scheme:
    made = check_scheme(scheme)
    if made.learns == "prefix":
        raise SkewlessError(
            f"Scheme '{made.spec}' learns which keys are frequent before it routes, and "
            "balanced_map learns costs: use 'proactive', or 'shuffle' to compare with."
        )
    return made


def _check(
    df: DataFrame,
    function: MapFunction,
    share: float,
    scheme: Scheme,
    checkpoint: str | None,
    observer: Observer | None,
) -> None:
    if not callable(function):
        raise SkewlessError(
            f"balanced_map takes a function from batches to batches, as Spark's mapInArrow does, "
            f"not {function!r}."
        )
    if not 0 < number("The share of the first wave", share) < 1:
        raise SkewlessError(
            f"The first wave is a share of the rows between 0 and 1, both excluded, not {share}."
        )
    check_observer(observer)
    if df.isStreaming:
        if checkpoint is None and scheme.learns_costs:
            raise SkewlessError(
                "On a stream each micro-batch learns from those before it: give the folder of the "
                "stream's checkpoint as checkpoint=, or use the scheme 'shuffle', which learns "
                "nothing."
            )
        return
    for name, given in (("checkpoint", checkpoint), ("observer", observer)):
        if given is not None:
            raise SkewlessError(
                f"Of a batch there is nothing to keep or to tell between micro-batches, and this "
                f"DataFrame is no stream: leave {name}= out."
            )
