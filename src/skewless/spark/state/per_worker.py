"""State per worker, across micro-batches: one worker's state on exactly one state partition.

Spark places the state of a stateful processor by the hash of its grouping key, and offers no other
way: partition = murmur3(key, 42) mod P. So each worker gets a surrogate key, the int whose hash is
the worker's number: it lands on the partition of that number, whatever P is. That matters, because
Spark keeps the P of a stream's first start, and the session's setting may be another by now.

Spark runs a state partition on the executor that holds its state, as long as there is room. So
here, other than in `group`, a worker stays on one machine, and a scheme can learn how fast that is.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from skewless.errors import SkewlessError, unknown
from skewless.hashing import check_seed
from skewless.schemes import Scheme
from skewless.spark.adapt.control import Control, learns_between_batches
from skewless.spark.adapt.plans import stream_folder
from skewless.spark.adapt.watch import Watch, sole_operator
from skewless.spark.input.checks import (
    Key,
    check_scheme,
    check_server,
    check_worker_count,
    key_columns,
    make_plan,
)
from skewless.spark.input.conform import schema_of
from skewless.spark.input.state_store import IN_MEMORY, STATE_STORE, use_rocksdb
from skewless.spark.input.surrogates import surrogate
from skewless.spark.input.version import StatefulProcessor
from skewless.spark.input.wire import identity as key_identity
from skewless.spark.routing.route import routing
from skewless.spark.state.processor import (
    REPORT,
    SURROGATE,
    WORKER,
    ReportingProcessor,
    WorkerProcessor,
    reporting_schema,
)

_PARTITIONS = "spark.sql.shuffle.partitions"
_MODES = ("append", "update", "complete")


def per_worker(
    df: DataFrame,
    key: Key,
    scheme: Scheme | str,
    workers: int,
    processor: StatefulProcessor,
    schema: StructType | str,
    *,
    output_mode: str = "update",
    time_mode: str = "none",
    seed: int = 0,
    checkpoint: str | None = None,
) -> DataFrame:
    """Run a stateful processor once per worker, on the rows that a scheme gives the worker.

    The processor is as for Spark's `transformWithStateInPandas`. Its key is `(worker,)`, and its
    state is the worker's own. So a key that has several workers has a part of its state on each: if
    you want one result per key, merge the processor's output by key. The stream needs at least as
    many shuffle partitions as workers; the rows keep their columns.

    checkpoint: the folder of the stream's checkpoint, which the driver and the executors must share
        as files. A restart with another scheme, number of workers or seed is then rejected, since
        it would find another worker's state. Schemes that learn keep learning from batch to batch,
        except for those that give a key one worker, where the key's state must stay
    """
    check_server(df)
    if StatefulProcessor is None:
        raise SkewlessError(
            f"State per worker needs Spark 4.0 or later, and this is {df.sparkSession.version}: "
            "upgrade it, or use group."
        )
    made = check_scheme(scheme)
    workers = check_worker_count(workers)
    seed = check_seed(seed)
    plan = make_plan(made, workers, seed, None)
    if not df.isStreaming:
        raise SkewlessError(
            "State from batch to batch belongs to a stream, and this DataFrame is not one: read it "
            "with spark.readStream, or use group."
        )
    if isinstance(processor, type) or not hasattr(processor, "handleInputRows"):
        raise SkewlessError(
            "A processor is an object of your own subclass of pyspark's StatefulProcessor, not "
            f"{processor!r}."
        )
    schema = schema_of(df.sparkSession, schema)
    if not isinstance(output_mode, str) or output_mode.lower() not in _MODES:
        raise unknown("output mode", str(output_mode), _MODES)
    identity, mode = key_identity(*key_columns(df, key)), output_mode.capitalize()
    taken = {name.lower() for name in df.columns} & {WORKER, SURROGATE}
    if taken:
        raise SkewlessError(
            f"The DataFrame has a column '{min(taken)}', which per_worker uses itself: rename it."
        )
    partitions = int(df.sparkSession.conf.get(_PARTITIONS) or 0)
    if partitions < workers:
        raise SkewlessError(
            f"{workers} workers need a state partition each, and {_PARTITIONS} is {partitions}: "
            f"set it to {workers} or more before the stream first starts."
        )
    use_rocksdb(df.sparkSession)
    if df.sparkSession.conf.get(STATE_STORE) == IN_MEMORY:
        raise SkewlessError(
            f"Spark cannot keep state per worker in the store that {STATE_STORE} names: unset it, "
            "and RocksDB is used."
        )
    control = folder = None
    if checkpoint is not None:
        folder = stream_folder(checkpoint, made, workers, seed)
        folder.claim(state="per worker")
        if learns_between_batches(made) and not made.one_worker_per_key:
            control = Control(folder)
            control.begin(plan)
    chosen = [surrogate(worker) for worker in range(workers)]
    numbers = {number: worker for worker, number in enumerate(chosen)}
    if control is None:
        placed = _placed(*routing(df, identity, made, plan), chosen)
        mine = WorkerProcessor(processor, numbers)
        rows = placed.transformWithStateInPandas(mine, schema, mode, time_mode)
        return rows if folder is None else sole_operator(rows, folder)
    watch = Watch(made.spec, workers, control, None)
    placed = _placed(watch.routed(df, identity, control, WORKER), F.col(WORKER), chosen)
    with_reports = reporting_schema(schema)
    reporting = ReportingProcessor(processor, numbers, with_reports.names)
    rows = placed.transformWithStateInPandas(reporting, with_reports, mode, time_mode)
    seen = watch.heard(rows, REPORT).where(F.col(REPORT).isNull()).drop(REPORT)
    return sole_operator(seen, control.folder)


def _placed(rows: DataFrame, worker: Column, chosen: list[int]) -> GroupedData:
    """The rows of each worker as a group, on the worker's own state partition."""
    return rows.withColumn(SURROGATE, F.get(F.lit(chosen), worker)).groupBy(SURROGATE)
