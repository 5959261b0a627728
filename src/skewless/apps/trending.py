"""Trending: the keys that grew most, in the newest period, against a past that fades.

A period is a span of time. What a key counted i periods ago weighs 2^(−i / half_life); the past is
the mean of all earlier periods with these weights. Growth is (now + smoothing) ÷ (past +
smoothing), so that a key which came twice after once is no trend.
"""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

from skewless.apps.counting.fold import (
    IDENTITY,
    ITEM,
    join_workers,
    ranked,
    shown_items,
    shown_type,
)
from skewless.apps.counting.run import MOST_COUNTERS, at_least_one, counting
from skewless.apps.counting.summary import (
    UNLIMITED,
    ItemSummary,
    counted,
    merged,
    nothing,
    together,
)
from skewless.errors import SkewlessError
from skewless.folds import PerKeyFold
from skewless.schemes import Scheme
from skewless.spark.input.checks import Key, field_of

PERIOD = "skewless_period"
LONGEST_PERIOD = timedelta(microseconds=2**62)  # Spark counts microseconds in 64 bits
RESULTS = ("period", "rank", "now", "past", "growth", "error")


class Trend(NamedTuple):
    """One worker's counts of the newest period it saw, and of all before it, faded."""

    period: int  # its start, in microseconds
    now: ItemSummary
    past: ItemSummary


class Trends(PerKeyFold):
    """The keys that grew most; a state is a `Trend` for each worker that saw messages."""

    name = "found"
    columns = (ITEM, IDENTITY, PERIOD)

    def __init__(
        self,
        kind: pa.DataType,
        counters: int | None,
        workers_per_key: int,
        k: int,
        length_us: int,
        half_life: float,
        smoothing: float,
        about: str = "",
    ) -> None:
        self.kind, self.k, self.workers_per_key = kind, k, workers_per_key
        self.counters = UNLIMITED if counters is None else counters
        self.length_us, self.half_life, self.smoothing = length_us, half_life, smoothing
        self.about = about
        self.worker = 0
        number = pa.float64()
        self.result = pa.list_(
            pa.struct(
                [("period", pa.int64()), ("item", shown_type(kind)), ("now", pa.int64()),
                 ("past", number), ("growth", number), ("error", number)]
            )
        )  # fmt: skip

    def on_worker(self, worker: int) -> Self:
        """The same, which says whose counts it makes."""
        mine = copy.copy(self)
        mine.worker = worker
        return mine

    def zero(self) -> dict[int, Trend]:
        """No worker has seen anything."""
        return {}

    def reduce(self, state: Any, *columns: pa.Array) -> dict[int, Trend]:
        """Count each period of the batch, oldest first."""
        items, identities, periods = columns[0].cast(self.kind), *columns[1:]
        numbers = periods.to_numpy(zero_copy_only=False)
        for period in np.unique(numbers).tolist():
            mine = pa.array(numbers == period)
            now = counted(identities.filter(mine), items.filter(mine), self.counters)
            new = Trend(period, now, nothing(self.kind, self.counters))
            state = self.merge(state, {self.worker: new})
        return dict(state)

    def merge(self, a: Any, b: Any) -> dict[int, Trend]:
        """Worker by worker, both as of the later period."""
        return join_workers(a, b, self._joined)

    def _joined(self, a: Trend, b: Trend) -> Trend:
        period = max(a.period, b.period)
        a, b = self._as_of(a, period), self._as_of(b, period)
        return Trend(period, merged(a.now, b.now), merged(a.past, b.past))

    def _as_of(self, trend: Trend, period: int) -> Trend:
        """The same counts seen from a later period."""
        steps = (period - trend.period) // self.length_us
        if not steps:
            return trend
        fade = 2.0 ** (-1 / self.half_life)
        past = merged(
            trend.past.scaled(fade**steps), trend.now.scaled(fade ** (steps - 1) * (1 - fade))
        )
        return Trend(period, nothing(self.kind, self.counters), past)

    def finish(self, state: Any) -> list[dict[str, Any]]:
        """The keys of the newest period, by growth; of equals, the lesser item."""
        period = max(trend.period for trend in state.values())
        trends = [self._as_of(state[worker], period) for worker in sorted(state)]
        now = together([trend.now for trend in trends], self.workers_per_key)
        past = together([trend.past for trend in trends], self.workers_per_key)
        before, before_errors = past.at(now.keys)
        growth = (now.counts + self.smoothing) / (before + self.smoothing)
        order = ranked(now.items, growth)[: self.k]
        columns = {
            "item": shown_items(now.items, order),
            "now": [round(count) for count in now.counts[order].tolist()],
            "past": before[order].tolist(),
            "growth": growth[order].tolist(),
            "error": (now.errors + before_errors)[order].tolist(),
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [{"period": period, **row} for row in rows]


def trending(
    df: DataFrame,
    key: Key,
    time: str | Column,
    period: timedelta,
    k: int = 10,
    *,
    half_life: float = 3.0,
    smoothing: float = 10.0,
    counters: int | None = None,
    by: Key | None = None,
    scheme: Scheme | str = "partial",
    workers: int | None = None,
    seed: int = 0,
) -> DataFrame:
    """The k keys that grew most in the newest period, against the faded mean of those before.

    One row per key: the start of the `period`, `rank`, its value, `now`, `past`, `growth` and
    `error`, the most by which `now` and `past` together may be too high. On a stream each
    micro-batch gives the whole ranking (output mode "update"). Messages of an earlier period count
    for the past; those without a time do not count.

    time: a column of timestamps
    period: its length, at least a microsecond; periods begin at multiples of it since 1970
    half_life: the number of periods after which a count weighs half
    smoothing: messages added to now and past alike
    counters: how many counters a worker keeps, for now and for the past; None counts every key
        exactly
    The other parameters are as for `heavy_hitters`.
    """
    k = at_least_one("k", k)
    if counters is not None:
        at_least_one("counters", counters, MOST_COUNTERS)
    if not isinstance(period, timedelta) or not timedelta(0) < period <= LONGEST_PERIOD:
        years = LONGEST_PERIOD.days // 365
        raise SkewlessError(
            f"A period is a timedelta above 0 and of at most {years:,} years, not {period!r}."
        )
    for what, value in (("half_life", half_life), ("smoothing", smoothing)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise SkewlessError(f"{what} is a number above 0, not {value!r}.")
    stamp = field_of(df, time, "time")
    if not isinstance(stamp.dataType, TimestampType | TimestampNTZType):
        raise SkewlessError(
            f"Column '{stamp.name}' of type {stamp.dataType.simpleString()} is not a time: cast it "
            "to a timestamp first."
        )
    length_us = period // timedelta(microseconds=1)
    at = F.col(time) if isinstance(time, str) else time
    micros = F.unix_micros(at.cast("timestamp"))
    start = (micros - F.pmod(micros, F.lit(length_us))).cast("long")
    count = counting(
        df.where(at.isNotNull()), key, by, scheme, workers, seed, start.alias(PERIOD),
        results=RESULTS,
    )  # fmt: skip
    fading = length_us, half_life, smoothing
    fold = Trends(
        count.kind, counters, count.workers_per_key, k, *fading, about=count.about(counters)
    )

    def columns(row: Column) -> list[Column]:
        start = F.timestamp_micros(row["period"]).alias("period")
        names = ("now", "past", "growth", "error")
        return [start, count.shown(row), *(row[n].alias(n) for n in names)]

    return count.exploded(count.fold(fold, "update"), columns)
