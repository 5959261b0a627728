"""What a source runs: rows routed by the plan of their micro-batch, the report on the last row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from skewless.compiled.shipping import Shipment
from skewless.spark.adapt.plans import StreamFolder
from skewless.spark.input.version import ArrowFunction
from skewless.spark.report.source import source_report
from skewless.spark.report.task import Task, report_column
from skewless.spark.routing.route import TaskRouter

ROUTED = "struct<worker: int, report: string>"


def reporting_router(folder: StreamFolder) -> ArrowFunction:
    """The worker of each row, and on the last row what this source has to report."""
    shipped = Shipment(folder, lambda: folder.scheme.warm_up(folder.first_plan()))

    def workers_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        task = Task.current()
        mine = shipped.value
        plan = mine.plan_of(task.batch)
        router = TaskRouter(mine.scheme, plan, task.partition)
        held: pa.Array | None = None
        for batch in batches:
            workers = pa.array(router.route(batch))
            if not len(workers):
                yield _routed_rows(workers, None)
                continue
            if held is not None:
                yield _routed_rows(held, None)
            held = workers
        if held is not None:
            facts = {"source": task.partition, "attempt": task.attempt}
            yield _routed_rows(held, source_report(facts, router.report()))

    return workers_of


def _routed_rows(workers: pa.Array, report: str | None) -> pa.Array:
    columns = [workers, report_column(len(workers), report)]
    return pa.StructArray.from_arrays(columns, names=["worker", "report"])
