"""What Spark says about its own join before it runs: whether keys matter, whether rows may differ.

Spark Connect shows no plans but in words.
"""

from __future__ import annotations

import re
import threading

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.spark.input.checks import free_name
from skewless.spark.input.version import answer_of
from skewless.spark.join.keys import JoinKeys
from skewless.spark.join.kinds import Kind

# Spark leaves fields of wide tables out of its words, and ends those of long plans early.
_SHOWN = {
    "spark.sql.debug.maxToStringFields": str(1 << 20),
    "spark.sql.maxPlanStringLength": str((1 << 31) - 16),
}
# What gives other rows when it is run again; found in the words of Spark's own plan.
_UNREPEATABLE = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|first|last"
    r"|first_value|last_value|nth_value|any_value|max_by|min_by|lag|lead|row_number|ntile"
    r"|collect_list|collect_set|array_agg|listagg|mode|histogram_numeric|percentile_approx"
    r"|approx_percentile|spark_partition_id|current_timestamp|localtimestamp|now|current_date"
    r"|current_time)\("
    r"|\bRowFrame\b|\bSample\b|\bGlobalLimit\b|\bLocalLimit\b|\bOffset\b|\bTail\b"
)
# A join in a tree of operators, and all that is said of it.
_JOIN = re.compile(r"^[ :+\-]*(?:\*\(\d+\) )?(\w*Join|CartesianProduct)\b(.*)$", re.MULTILINE)
_FILTERS = re.compile(r"\bLeft(?:Semi|Anti)\b")
_HINT = re.compile(r"(?:left|right)Hint=\(strategy=(\w+)\)")
_PHYSICAL = "== Physical Plan =="
_ENDLESS = 1 << 60  # rows that Spark takes for too many to broadcast
_EXPLAINS = threading.Lock()  # how much Spark explains is a setting of the session


def explained(joined: DataFrame) -> str:
    """Spark's plans of a join and of its sides in words, from first to last; "" if it has none."""
    conf = joined.sparkSession.conf
    with _EXPLAINS:
        before = {name: str(conf.get(name)) for name in _SHOWN}
        try:
            for name, value in _SHOWN.items():
                conf.set(name, value)
            words = answer_of("explain extended select * from {df}", df=joined)
        except AnalysisException:
            return ""
        finally:
            for name, value in before.items():
                conf.set(name, value)
    return "" if words is None else str(words[0])


def as_batch(left: DataFrame, right: DataFrame, keys: JoinKeys, how: str) -> DataFrame:
    """The join of a stream and a table with more rows than any table in place of the stream.

    Spark shows plans of streams only once they run.
    """
    table, values = (right, keys.right.values) if left.isStreaming else (left, keys.left.values)
    name = free_name(table.columns, "row")
    endless = table.sparkSession.range(_ENDLESS).select(F.col("id").cast("int").alias(name))
    equal = F.col(name) == F.hash(*values)
    sides = (endless, table) if left.isStreaming else (table, endless)
    return sides[0].join(sides[1], equal, how)


def is_repeatable(words: str) -> bool:
    """Whether nothing in Spark's plans tells that the rows may differ next time."""
    return bool(words) and not _UNREPEATABLE.search(words)


def why_keys_do_not_matter(words: str, kind: Kind) -> str:
    """Why Spark itself sends no row of this join where its key belongs, or "".

    Spark decides so by hints of the user and by what it knows of the tables' sizes. It also does so
    for want of anything better where a key is a constant, which cells make a join of keys again.
    """
    logical, _, physical = words.partition("== Optimized Logical Plan ==")[2].partition(_PHYSICAL)
    joined, done = _first_join(logical, kind), _first_join(physical, kind)
    if joined is None or done is None:
        return ""
    hints, operator = _HINT.findall(joined[2]), done[1]
    if operator == "CartesianProduct" and "shuffle_replicate_nl" in hints:
        return "Spark brings all rows of one side to all rows of the other, as a hint asks"
    nested = operator == "BroadcastNestedLoopJoin" and "broadcast" in hints
    if operator == "BroadcastHashJoin" or nested:
        side = "left" if re.search(r"\bBuildLeft\b", done[2]) else "right"
        return f"Spark broadcasts the {side} side (as a hint asks, or because it is small)"
    return ""


def _first_join(tree: str, kind: Kind) -> re.Match[str] | None:
    """The join itself, which stands above those of its sides.

    But for a join that only filters: Spark does it below another join of the left side if it can.
    """
    joins = _JOIN.finditer(tree)
    return next((join for join in joins if not kind.filters or _FILTERS.search(join[2])), None)
