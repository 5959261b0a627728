"""Routing by what rows will cost: `proactive` on Spark, where a whole batch is seen at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless.compiled.shipping import Shipment
from skewless.schemes import Scheme
from skewless.schemes.proactive.scheduler import ProactivePlan, ProactiveTally, estimates
from skewless.spark.adapt.control import Control
from skewless.spark.adapt.plans import Learned, StreamFolder
from skewless.spark.input.version import ArrowFunction
from skewless.spark.report.task import Task


class CostControl(Control):
    """Plans again when enough was seen: a replan halves what earlier messages count.

    Enough is as much as the plan knows, so that a few messages do not outweigh many, or a window
    of messages per worker, the paper's N, so that costs that change are noticed in the end.
    """

    def due(self, learned: Learned) -> int:
        """How many messages a replan awaits."""
        plan: Any = learned.plan
        known = int(plan.known[0, :, 0].sum())
        return min(known, int(plan.window[0]) * self.folder.workers)


class CostRouter:
    """One source that knows what rows will cost, and sees a whole Arrow batch of them at once.

    So it deals the costliest out first and fills up with the cheap: greedy in the order of arrival
    comes within 2 − 1/k of the best possible, greedy by falling cost within 4/3 − 1/(3k) (Graham).
    A plan that knows no costs is followed in the order of arrival, round robin. A key never seen is
    rare: it is taken to cost what keys seen once did, where the paper takes the mean over messages.
    """

    def __init__(self, scheme: Scheme, plan: ProactivePlan, source: int) -> None:
        self._scheme, self._plan = scheme, plan
        self._tally = cast(ProactiveTally, scheme.tally(plan, source))
        counts, costs = plan.known[..., 0], plan.known[..., 1]
        once = (counts > 0) & (counts <= 1)
        if once.any():
            cells = self._tally.cells
            cells[cells[..., 0] == 0, 1] = (costs[once] / counts[once]).mean()

    def route(
        self, identities: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """The worker of each row of a batch, and what the row is expected to cost."""
        keys = identities.view(np.uint64)
        keys.setflags(write=False)  # as Arrow hands them over: compiled for one kind only
        costs = estimates(self._plan, self._tally, keys)
        order = np.argsort(-costs, kind="stable")
        chosen = np.empty(keys.size, np.int32)
        self._scheme.send(self._plan, self._tally, keys[order], np.zeros(keys.size), chosen)
        workers = np.empty_like(chosen)
        workers[order] = chosen
        return workers, costs


def cost_routing(scheme: Scheme, source: Any) -> ArrowFunction:
    """What a task runs: the worker and the expected cost of each row of an Arrow batch.

    source: a plan, or the folder that has the plan of each micro-batch
    """

    def warm_up() -> list[Callable[..., Any]]:
        plan: Any = source.first_plan() if isinstance(source, StreamFolder) else source
        CostRouter(scheme, plan, 0).route(np.empty(0, np.int64))
        return [scheme.route, estimates]

    shipped = Shipment((scheme, source), warm_up)

    def workers_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        task = Task.current()
        mine, plans = shipped.value
        settled = isinstance(plans, StreamFolder)
        plan = plans.plan_of(task.batch) if settled else plans
        router = CostRouter(mine, plan, task.partition)
        for batch in batches:
            columns = [pa.array(column) for column in router.route(batch.to_numpy())]
            yield pa.StructArray.from_arrays(columns, names=["worker", "cost"])

    return workers_of
