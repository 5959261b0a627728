"""One pass over a DataFrame's keys: counts of all, and a fair sample with the names of hot keys.

Every task keeps a bounded fair sample of its rows (`skewless.diagnose.sample`); one more task
brings all samples to one rate and below a common limit, so that the driver's memory is bounded
whatever the number of tasks. Spark counts messages, nulls and keys on the way, by an observation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField

from skewless._version import __version__
from skewless.diagnose.keys import HOT_KEYS
from skewless.diagnose.names import LONGEST
from skewless.diagnose.sample import F64, LIMIT, Sample, Thinner
from skewless.errors import SkewlessError
from skewless.spark.input.checks import Key, key_columns
from skewless.spark.input.costs import cost_numbers, is_usable
from skewless.spark.input.wire import identity_by_bytes
from skewless.spark.input.workers_python import check_workers_python
from skewless.spark.report.task import Task

TASK_LIMIT = 1 << 18  # rows that one task keeps
_NAMED = 4 * HOT_KEYS  # keys that each task names
_KEYS_ERROR = 0.01
_SCHEMA = "task int, seen long, level int, bits binary, keys binary, costs binary, names binary"
_FIELDS = ("bits", "keys", "costs")
_ARROW = pa.schema(
    [("task", pa.int32()), ("seen", pa.int64()), ("level", pa.int32())]
    + [(name, pa.binary()) for name in (*_FIELDS, "names")]
)


def sample_of(
    df: DataFrame, key: Key, cost: str | Column | None = None, seed: int = 0
) -> tuple[Sample, dict[int, str]]:
    """A sample of the DataFrame, and the names of its most frequent keys by their identities."""
    columns, fields = key_columns(df, key)
    number = F.lit(1.0) if cost is None else cost_numbers(df, cost)
    usable = is_usable(number)
    rows = df.select(
        identity_by_bytes(columns, fields).alias("identity"),
        F.when(usable, number).otherwise(F.lit(0.0)).alias("cost"),
        _name(columns, fields).alias("name"),
        F.array_min(_nulls(columns)).alias("is_null"),
        (~usable).alias("is_no_cost"),
    )
    seen = Observation()
    watched = rows.observe(
        seen,
        F.count(F.lit(1)).alias("messages"),
        F.count_if("is_null").alias("nulls"),
        F.count_if("is_no_cost").alias("no_costs"),
        F.approx_count_distinct("identity", _KEYS_ERROR).alias("keys"),
    )
    check_workers_python(df.sparkSession, __version__)
    kept = watched.drop("is_null", "is_no_cost").mapInArrow(_thin(seed), _SCHEMA)
    found = kept.repartition(1).mapInArrow(_join, _SCHEMA).collect()
    # Spark before 4.0 says nothing of no rows.
    counts = {"nulls": 0, "no_costs": 0, "keys": 0, **seen.get}
    sample, names = _gathered(found, counts, cost is not None)
    _check_costs(int(counts["no_costs"]), sample)
    return sample, names


def without_nulls(df: DataFrame, key: Key) -> DataFrame:
    """Only rows none of whose key columns is null."""
    columns, _ = key_columns(df, key)
    return df.where(~F.array_max(_nulls(columns)))


def _nulls(columns: list[Column]) -> Column:
    """Which columns are null, as one array: a chain of ANDs as long as a wide key is too deep."""
    return F.array(*(column.isNull() for column in columns))


def _check_costs(rows: int, sample: Sample) -> None:
    """Refuse costs of which no prediction can be made; `rows` of them are no costs at all."""
    if rows:
        raise SkewlessError(
            f"The cost of {rows:,} {'row' if rows == 1 else 'rows'} is negative, infinite or "
            "not a number: give finite costs of 0 or more, or leave such rows out first."
        )
    if sample.costs is not None and sample.costs.size and not sample.costs.any():
        raise SkewlessError(
            "The cost of every row is 0 or null, so there is no work to spread: give costs above "
            "0, or leave cost= out."
        )


def _name(columns: list[Column], fields: list[StructField]) -> Column:
    """The key as text: bytes in hexadecimal, several columns separated by commas."""
    parts = []
    for column, field in zip(columns, fields, strict=True):
        text = (
            F.lower(F.hex(column))
            if isinstance(field.dataType, BinaryType)
            else column.cast("string")
        )
        parts.append(F.coalesce(F.substring(text, 1, LONGEST), F.lit("null")))
    return F.concat_ws(", ", *parts)


def _thin(seed: int) -> Any:
    """What a task runs: one row with its sample."""

    def thin(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = Task.current().partition
        thinner = Thinner(TASK_LIMIT, seed + task)
        for batch in batches:
            identity, cost, name = batch.columns
            thinner.add(identity.to_numpy().view(np.uint64), cost.to_numpy(), name)
        if thinner.seen:
            yield _packed(task, thinner)

    return thin


def _packed(task: int, thinner: Thinner) -> pa.RecordBatch:
    pieces = list(thinner.kept())
    keys = np.concatenate([piece[0] for piece in pieces])
    costs = np.concatenate([piece[1] for piece in pieces])
    names = pa.chunked_array([piece[2] for piece in pieces])
    distinct, first, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_NAMED]
    # As bytes: Spark's text may be anything, and Python's is UTF-8.
    shown = names.take(pa.array(first[order])).combine_chunks().cast(pa.binary())
    named = pa.table({"key": distinct[order], "name": shown})
    values = [task, thinner.seen, thinner.level, thinner.bits().tobytes(), keys.tobytes()]
    values += [costs.tobytes(), _table_bytes(named)]
    arrays = [pa.array([v], kind) for v, kind in zip(values, _ARROW.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _table_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def _join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bring the samples of all tasks to one rate, below the limit of them all."""
    rows: list[dict[str, Any]] = []
    level = held = 0
    for batch in batches:
        for row in batch.to_pylist():
            row = _thinned(row, level)
            rows.append(row)
            held += len(row["keys"])
            while row["level"] > level or held > 8 * LIMIT:
                level = max(level + (held > 8 * LIMIT), row["level"])
                rows = [_thinned(r, level) for r in rows]
                row, held = rows[-1], sum(len(r["keys"]) for r in rows)
    for row in rows:
        yield pa.RecordBatch.from_pylist([row], schema=_ARROW)


def _thinned(row: dict[str, Any], level: int) -> dict[str, Any]:
    if level <= row["level"]:
        return row
    bits = np.frombuffer(row["bits"], np.uint64)
    kept = bits >> np.uint64(64 - level) == 0
    parts = {name: np.frombuffer(row[name], np.uint64)[kept].tobytes() for name in _FIELDS}
    return {**row, **parts, "level": level}


def _scaled(costs: F64) -> F64:
    """The costs in a unit in which the largest is near 1: sums of huge ones are finite then."""
    _, exponent = np.frexp(costs.max(initial=0.0))
    return np.ldexp(costs, -exponent)


def _gathered(
    rows: list[Any], counts: dict[str, Any], with_costs: bool
) -> tuple[Sample, dict[int, str]]:
    ordered = sorted(rows, key=lambda row: row.task)
    keys = [np.frombuffer(bytes(row["keys"]), np.uint64) for row in ordered]
    costs = [np.frombuffer(bytes(row["costs"]), np.float64) for row in ordered]
    sources = [np.full(part.size, n, np.int32) for n, part in enumerate(keys)]
    names: dict[int, str] = {}
    for row in ordered:
        named = pa.ipc.open_stream(bytes(row["names"])).read_all()
        texts = (name.decode(errors="replace") for name in named["name"].to_pylist())
        names.update(zip(named["key"].to_pylist(), texts, strict=True))
    messages = sum(row.seen for row in ordered)
    made = Sample(
        np.concatenate([np.empty(0, np.uint64), *keys]),
        np.concatenate([np.empty(0, np.int32), *sources]),
        _scaled(np.concatenate([np.empty(0), *costs])) if with_costs else None,
        messages,
        int(counts["keys"]),
        int(counts["nulls"]),
        distinct_is_exact=False,
    )
    if made.keys.size == messages:  # nothing was left out: the sample knows better
        distinct = int(np.unique(made.keys).size)
        made = Sample(made.keys, made.sources, made.costs, messages, distinct, made.nulls)
    return made, names
