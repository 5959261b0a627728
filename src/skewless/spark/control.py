"""The driver's loop for schemes that learn: reports of a batch, a new plan for the next.

Each source's report of batch n rides on its last row (see `tasks`). When Spark says that the batch
is done, the reports are merged, the scheme plans again, and the plan is kept for batch n + 1. Spark
says so beside the stream, not in it: a batch that starts at once may run with the plan before. What
its sources report counts all the same; what its workers took says nothing of the newer plan, and is
left out. A driver that dies in between loses what one batch taught, and nothing else.
"""

from __future__ import annotations

import base64
import functools
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from skewless.compiled.shipping import Shipment
from skewless.schemes import Feedback, Scheme
from skewless.schemes.api import Arrays
from skewless.spark.codec import pack, unpack
from skewless.spark.plans import Learned, StreamFolder, empty_report
from skewless.spark.route import TaskRouter, in_python
from skewless.spark.tasks import Task, WorkerReport, per_worker, report_column
from skewless.spark.version import ArrowFunction

ROUTED = "struct<worker: int, report: string>"


def learns_between_batches(scheme: Scheme) -> bool:
    """Does what one batch showed change the next plan of this scheme?"""
    return type(scheme).replan is not Scheme.replan


@dataclass(frozen=True)
class Control:
    """Turns what the sources of a batch reported into the plan for the next."""

    folder: StreamFolder

    def begin(self, plan: Arrays) -> None:
        """Start a new stream with this plan; a stream that goes on keeps its own."""
        scheme, workers = self.folder.scheme, self.folder.workers
        self.folder.begin(Learned(plan, empty_report(scheme, plan), 0, 0, np.zeros(workers)))

    def learn(self, batch: int, sources: Iterable[str], workers: list[WorkerReport]) -> None:
        """Make the plan for the following batch from the reports of this one."""
        scheme, count = self.folder.scheme, self.folder.workers
        before, followed = self.folder.before(batch)
        reports = source_reports(sources, empty_report(scheme, before.plan))
        if not reports:
            return
        served = per_worker(workers, "messages", count)
        loads = before.loads + served
        pending = functools.reduce(scheme.merge, reports, before.pending)
        messages = before.messages + int(served.sum())
        after = before._replace(pending=pending, messages=messages, loads=loads)
        if messages >= self.due(before):
            busy_s = per_worker(workers, "busy_s", count) if followed else np.zeros(count)
            feedback = Feedback(served, busy_s, np.zeros(count), loads)
            plan = scheme.replan(before.plan, pending, feedback)
            empty = empty_report(scheme, plan)
            after = Learned(plan, empty, 0, before.replans + 1, loads)
        self.folder.write(batch + 1, after)

    def due(self, learned: Learned) -> int:
        """How many messages a replan awaits: a learning phase first, then the scheme's own pace."""
        scheme = self.folder.scheme
        if scheme.learns == "prefix" and not learned.replans:
            return scheme.learning_messages
        return scheme.replan_every

    def routed(self, identity: Column) -> Column:
        """The worker of each row under the plan of its batch, and on the last row the report."""
        return in_python(_reporting(self.folder), ROUTED, identity)


def reports_of(column: str) -> Column:
    """The aggregate that gathers reports for `observe`."""
    return F.collect_list(column).alias("reports")


def source_report(facts: Mapping[str, Any], report: Arrays) -> str:
    """The report of one source as text, with its number and attempt; sketches are mostly zeros."""
    return base64.b64encode(zlib.compress(pack(facts, report), level=1)).decode()


def read_source_report(text: str, template: Arrays) -> tuple[dict[str, Any], Arrays]:
    """The facts and the report of a source."""
    facts, (report,) = unpack(zlib.decompress(base64.b64decode(text)), template)
    return facts, report


def source_reports(observed: Iterable[str], template: Arrays) -> list[Arrays]:
    """One report per source, of its last attempt, ordered by source."""
    last: dict[int, tuple[int, Arrays]] = {}
    for text in observed:
        facts, report = read_source_report(text, template)
        source, attempt = facts["source"], facts["attempt"]
        if source not in last or last[source][0] < attempt:
            last[source] = attempt, report
    return [last[source][1] for source in sorted(last)]


def _reporting(folder: StreamFolder) -> ArrowFunction:
    shipped = Shipment(folder, lambda: folder.scheme.warm_up(folder.first_plan()))

    def workers_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        task = Task.current()
        mine = shipped.value
        plan = mine.settle(task.batch or 0).plan
        router = TaskRouter(mine.scheme, plan, task.partition)
        held: pa.Array | None = None
        for batch in batches:
            workers = pa.array(router.route(batch.to_numpy()))
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
