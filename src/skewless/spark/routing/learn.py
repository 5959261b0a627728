"""Learning a plan from a DataFrame, before it is routed: one pass over a sample of its keys.

    plan = learn(df, "word", "distribution-aware:theta=0.001", 50)
    counts = group(df, "word", plan).fold(folds.count())

Every task runs the scheme's own kernel over the identities that it reads, as a source of the
simulator does, and sends its report; the driver merges the reports and plans. (Spark's
`approx_top_k` would name the hot keys too, but not what is left in each bucket of the others.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame

from skewless._version import __version__
from skewless.arguments import number
from skewless.compiled.shipping import Shipment
from skewless.errors import SkewlessError
from skewless.hashing import check_seed
from skewless.schemes import Feedback, Scheme
from skewless.schemes.api import Arrays
from skewless.spark.input.checks import (
    Key,
    check_scheme,
    check_server,
    check_worker_count,
    key_columns,
)
from skewless.spark.input.wire import identity
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.report.codec import pack, unpack
from skewless.spark.report.task import Task
from skewless.spark.routing.costs import capacities_of, check_count, cost_column, weighed
from skewless.spark.routing.plan import Plan
from skewless.spark.routing.route import TaskRouter

_REPORT = "partition int, messages long, report binary"
_REPORT_ARROW = pa.schema(
    [("partition", pa.int32()), ("messages", pa.int64()), ("report", pa.binary())]
)


def learn(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str,
    workers: int,
    *,
    sample: float = 0.1,
    seed: int = 0,
    cost: str | Column | None = None,
    capacities: Sequence[float] | None = None,
) -> Plan:
    """A plan of the scheme that knows the hot keys of this DataFrame; runs one job.

    Pass it to `route`, `repartition` or `group` in place of a scheme. For distribution-aware and
    graded-planned it becomes a Column expression; d-choices, w-choices and dynamic start from it
    with the hot keys already known.

    sample: the share of the rows to learn from, drawn at random; 1 reads every row
    cost, capacities: as for `route`; graded-planned only
    """
    check_server(df)
    made = check_scheme(scheme)
    if not made.plans_keys:
        raise SkewlessError(
            f"Scheme '{made.spec}' learns nothing from a sample of the keys: use it without a "
            "plan, or learn one of 'graded-planned', 'distribution-aware' or 'd-choices'."
        )
    if not 0 < number("The sample", sample) <= 1:
        raise SkewlessError(f"The sample is a share of the rows in (0, 1], not {sample}.")
    if df.isStreaming:
        raise SkewlessError(
            "A plan is learned from a batch DataFrame, not from a stream: read a part of the "
            "stream's data as a batch, or let the stream follow its hot keys while it runs."
        )
    workers, seed = check_worker_count(workers), check_seed(seed)
    rates, costs = capacities_of(made, capacities), cost_column(df, made, cost)
    check_count(rates, workers)
    first = made.plan(workers, seed, rates)
    check_workers_python(df.sparkSession, __version__)
    columns, fields = key_columns(df, key)
    rows = df.select(weighed(identity(columns, fields), costs).alias("row"))
    if sample < 1:
        rows = rows.sample(sample, seed)
    found = rows.mapInArrow(_reporting(made, first), _REPORT).collect()
    if not found:
        raise SkewlessError(
            "There is nothing to learn from: the DataFrame has no rows."
            if sample == 1
            else f"There is nothing to learn from: the sample of {sample:g} of the DataFrame's "
            "rows is empty; give more rows or a larger sample=."
        )
    arrays = _planned(made, first, [bytes(r.report) for r in sorted(found)], workers)
    messages = sum(row.messages for row in found)
    names = tuple(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    return Plan(made, workers, seed, names, messages, float(sample), arrays)


def _reporting(scheme: Scheme, plan: Arrays) -> Any:
    """What a task runs: its rows through the kernel, then one row with its report."""

    shipped = Shipment((scheme, plan), lambda: scheme.warm_up(plan))

    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = Task.current().partition
        router = TaskRouter(*shipped.value, partition)
        for batch in batches:
            router.route(batch.column(0))
        if router.messages:
            columns = [[partition], [router.messages], [pack({}, router.report())]]
            arrays = [pa.array(c, k) for c, k in zip(columns, _REPORT_ARROW.types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_REPORT_ARROW)

    return report


def _planned(scheme: Scheme, first: Any, packed: list[bytes], workers: int) -> Arrays:
    shape = scheme.report(first, scheme.tally(first, 0))
    reports = [unpack(data, shape)[1][0] for data in packed]
    plan: Any = scheme.replan_from(first, reports, Feedback.none(workers))
    if "start" in plan._fields:
        # The sample was only looked at: no worker has got anything yet that others must even out.
        plan = plan._replace(start=np.zeros(workers))
    learned: Arrays = plan
    return learned
