"""Whether Spark would send a whole side to every task, which knows no skew."""

from __future__ import annotations

import re

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructType,
)

from skewless.spark.join.expected import Expected
from skewless.spark.join.kinds import Kind
from skewless.spark.join.sizes import Sizes

_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_LEAST_SHOWN = 0.1  # MiB
_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def may_leave_keys(df: DataFrame, expected: Expected) -> bool:
    """Whether Spark may place rows of a join otherwise than by key, as far as is known cheaply.

    expected: of nothing but the keys, which are no more than whole rows
    """
    return expected.hinted or min(expected.left_bytes, expected.right_bytes) <= _limit(df)


def broadcast_side(left: DataFrame, right: DataFrame, kind: Kind, sizes: Sizes) -> str:
    """Why a side is small enough to broadcast in this type of join, or ""."""
    limit = _limit(left)
    for df, rows, side, allowed in (
        (right, sizes.right_rows, "right", not kind.keeps_right),
        (left, sizes.left_rows, "left", not kind.keeps_left and not kind.filters),
    ):
        size = rows * (8 + sum(_width(field.dataType) for field in df.schema.fields))
        if allowed and size <= limit:
            mib = size / (1 << 20)
            about = "less than 0.1" if mib < _LEAST_SHOWN else f"about {mib:.1f}"
            return (
                f"the {side} side has {about} MiB, which Spark broadcasts "
                f"({_THRESHOLD}; if it does not, say so with F.broadcast)"
            )
    return ""


def _limit(df: DataFrame) -> int:
    text = str(df.sparkSession.conf.get(_THRESHOLD, "10MB"))
    found = re.fullmatch(r"(-?\d+)\s*([bkmgt]?)b?", text.strip().lower())
    return int(found[1]) << _UNITS[found[2]] if found else 10 << 20


def _width(kind: DataType) -> int:
    """About how many bytes a value takes, as Spark assumes without statistics."""
    if isinstance(kind, StructType):
        return 8 + sum(_width(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _width(kind.elementType)
    if isinstance(kind, MapType):
        return _width(kind.keyType) + _width(kind.valueType)
    if isinstance(kind, BinaryType):
        return 100
    if isinstance(kind, StringType):
        return 20
    return 16 if isinstance(kind, DecimalType) else 8
