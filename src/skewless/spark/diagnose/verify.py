"""Did it help, and is it right: two DataFrames that should hold the same rows, run in turns."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.spark.input.checks import check_server, column_named
from skewless.spark.input.version import is_calendar_interval, is_variant

DIGITS = 9
ROUNDS = 1
_COMPARABLE_S = 1.0  # what Spark does besides makes shorter runs differ by half and more
_ALL_DIGITS = 16  # of a double
_MOST_DIGITS = 17  # which no two doubles share; more would tell nothing apart
_OFF_THE_GRID = 0.6180339887498949


@dataclass(frozen=True)
class Verification:
    """What `verify` returns: whether two DataFrames are equal, and which is faster.

    before_s, after_s: medians of the timed runs
    gain: the share of the earlier time that is saved; negative if it takes longer
    before_digest, after_digest: of all rows in any order, floats to 9 significant digits
    """

    equal: bool
    gain: float
    before_s: float
    after_s: float
    before_rows: int
    after_rows: int
    before_digest: str
    after_digest: str
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return self.verdict

    def _repr_html_(self) -> str:
        from skewless.diagnose.page.page import fragment, table, text

        rows = [
            ["before", f"{self.before_s:.2f}", f"{self.before_rows:,}", text(self.before_digest)],
            ["after", f"{self.after_s:.2f}", f"{self.after_rows:,}", text(self.after_digest)],
        ]
        shown = table(["", "#seconds", "#rows", "~digest"], rows)
        return fragment(f'<p class="verdict">{text(self.verdict)}</p>{shown}')


def verify(
    before: DataFrame, after: DataFrame, *, rounds: int = ROUNDS, digits: int = DIGITS
) -> Verification:
    """Run two DataFrames in turns, and say whether they hold the same rows and which is faster.

    Columns are matched by name. The digest of each is taken first, which also warms both up.

    rounds: the number of timed runs of each; the median counts
    digits: how many significant digits of floats must agree; not all, because sums of floats
        depend on their order
    """
    _check(before, after, rounds, digits)
    digits = min(digits, _MOST_DIGITS)
    names = before.columns
    ordered = after.select(*(column_named(name) for name in names))
    (rows, digest), (other_rows, other_digest) = (
        _digest(frame, digits) for frame in (before, ordered)
    )
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for frame, taken in zip((before, after), seconds, strict=True):
            start_s = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - start_s)
    before_s, after_s = map(statistics.median, seconds)
    equal = (rows, digest) == (other_rows, other_digest)
    gain = 1 - after_s / before_s
    return Verification(
        equal,
        gain,
        before_s,
        after_s,
        rows,
        other_rows,
        digest,
        other_digest,
        verdict(equal, seconds, rows, other_rows),
    )


def _check(before: DataFrame, after: DataFrame, rounds: int, digits: int) -> None:
    for frame in (before, after):
        check_server(frame)
        if frame.isStreaming:
            raise SkewlessError("verify runs batch DataFrames, and one of these is a stream.")
    if whole("The number of rounds", rounds) < 1 or whole("The number of digits", digits) < 1:
        raise SkewlessError(
            f"verify needs at least 1 round and 1 digit, not {rounds} and {digits}."
        )
    for frame in (before, after):
        if len({name.lower() for name in frame.columns}) < len(frame.columns):
            raise SkewlessError(
                "verify matches columns by name, and a name occurs twice: rename one of them."
            )
    for field in before.schema.fields:
        if not _can_be_compared(field.dataType):
            raise SkewlessError(
                f"Column '{field.name}' of type {field.dataType.simpleString()} has no digest: "
                "drop it from both sides, or take fields out of it first."
            )
    one, other = (dict(frame.dtypes) for frame in (before, after))
    if one != other:
        raise SkewlessError(
            f"The DataFrames differ in their columns, so they cannot hold the same rows: {one} "
            f"before and {other} after."
        )


def _can_be_compared(kind: DataType) -> bool:
    """Whether such values have a hash and can be written, without which no run can be timed."""
    if isinstance(kind, StructType):
        names = {field.name.lower() for field in kind.fields}
        alone = len(names) == len(kind.fields)
        return alone and all(_can_be_compared(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _can_be_compared(kind.elementType)
    if isinstance(kind, MapType):
        return _can_be_compared(kind.keyType) and _can_be_compared(kind.valueType)
    return not is_variant(kind) and not is_calendar_interval(kind)


def _digest(frame: DataFrame, digits: int) -> tuple[int, str]:
    """Rows, and a digest of them that does not depend on their order."""
    fields = frame.schema.fields
    columns = [_hashed(column_named(field.name), field.dataType, digits) for field in fields]
    row = F.xxhash64(F.lit(0), *columns)
    twin = F.xxhash64(F.lit(1), *columns)
    found = frame.select(row.alias("a"), twin.alias("b")).agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.col("a").cast("decimal(20,0)")).alias("a"),
        F.sum(F.col("b").cast("decimal(20,0)")).alias("b"),
    )
    counted = found.collect()[0]
    parts = [int(counted[name] or 0) % 2**64 for name in ("a", "b")]
    return int(counted["rows"]), "".join(f"{part:016x}" for part in parts)


def _hashed(value: Column, kind: DataType, digits: int) -> Column:
    """A number for a value, never null: Spark's own hash passes over nulls and inner bounds."""
    return F.xxhash64(F.isnull(value), _inner(value, kind, digits))


def _inner(value: Column, kind: DataType, digits: int) -> Column:
    """What tells values other than null apart."""
    if isinstance(kind, StructType):
        fields = (_hashed(value.getField(f.name), f.dataType, digits) for f in kind.fields)
        return F.xxhash64(F.lit(0), *fields)
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.xxhash64(F.size(value), F.transform(value, lambda x: _hashed(x, element, digits)))
    if isinstance(kind, MapType):
        key, item = kind.keyType, kind.valueType
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.xxhash64(
                _hashed(entry["key"], key, digits), _hashed(entry["value"], item, digits)
            ),
        )
        return F.xxhash64(F.size(value), F.array_sort(entries))
    if isinstance(kind, DoubleType | FloatType):
        number = value.cast("double") + F.lit(0.0)
        if digits < _ALL_DIGITS:
            # Sums of amounts often end in a 5, just where they are rounded: then the last bit, in
            # which sums of another order differ, would decide.
            number = number * F.lit(_OFF_THE_GRID)
        return F.format_string(f"%.{digits - 1}e", number)
    return value


def verdict(
    equal: bool, seconds: tuple[list[float], list[float]], rows: int, other_rows: int
) -> str:
    """What was found, in a sentence.

    seconds: of each timed run, before and after
    """
    if not equal:
        if rows != other_rows:
            return f"The results differ: {rows:,} rows before and {other_rows:,} after."
        return f"The results differ, in {rows:,} rows each: compare them before you go on."
    return f"The results are equal, {rows:,} rows; {_compared(*seconds)}."


def _compared(before: list[float], after: list[float]) -> str:
    """Which is faster, as far as the runs can tell."""
    before_s, after_s = statistics.median(before), statistics.median(after)
    took = f"{before_s:.2f} s before and {after_s:.2f} s after"
    if max(before_s, after_s) < _COMPARABLE_S:
        return f"both take less than a second, too short to tell which is faster: {took}"
    if len(before) > 1 and max(min(before), min(after)) <= min(max(before), max(after)):
        return f"the times of the {len(before)} runs overlap, so neither is surely faster: {took}"
    change = f"{100 * abs(1 - after_s / before_s):.0f} %"
    word = "less" if after_s <= before_s else "more"
    runs = "one run" if len(before) == 1 else f"the median of {len(before)} runs"
    return f"it takes {change} {word} time: {took}, in {runs} of each"
