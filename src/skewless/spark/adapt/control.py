"""The driver's loop for schemes that learn: reports of a batch, a new plan for the next.

Each source's report of batch n rides on its last row (see `router`). When Spark says that the batch
is done, the reports are merged, the scheme plans again, and the plan is kept for batch n + 1. Spark
says so asynchronously: a batch that starts at once may run with the plan before. What
its sources report counts all the same; what its workers took says nothing of the newer plan, and is
left out. A driver that dies in between loses what one batch taught, and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column

from skewless.schemes import Feedback, Scheme
from skewless.schemes.api import Arrays
from skewless.spark.adapt.carry import carried
from skewless.spark.adapt.plans import Learned, StreamFolder, empty_report
from skewless.spark.adapt.router import ROUTED, reporting_router
from skewless.spark.report.source import source_reports
from skewless.spark.report.task import WorkerReport, per_worker
from skewless.spark.routing.route import in_python


def learns_between_batches(scheme: Scheme) -> bool:
    """Does what one batch showed change the next plan of this scheme?"""
    return type(scheme).replan is not Scheme.replan


@dataclass(frozen=True)
class Control:
    """Turns what the sources of a batch reported into the plan for the next."""

    folder: StreamFolder

    def begin(self, plan: Arrays) -> None:
        """Start a new stream with this plan; a stream that goes on keeps its own.

        Under a new setting it keeps what was learned under the one before, where that still holds.
        """
        scheme, workers = self.folder.scheme, self.folder.workers
        first = Learned(plan, empty_report(scheme, plan), 0, 0, np.zeros(workers))
        before = self.folder.earlier()
        self.folder.begin(first if before is None else carried(*before, scheme, first))

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
        return self.folder.scheme.messages_until_replan(learned.replans)

    def routed(self, identity: Column) -> Column:
        """The worker of each row under the plan of its batch, and on the last row the report."""
        return in_python(reporting_router(self.folder), ROUTED, identity)
