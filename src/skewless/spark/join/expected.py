"""How large Spark takes the sides of a join to be before it runs, and whether they have hints."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from pyspark.sql import DataFrame

from skewless.spark.input.version import answer_of

_BYTES = re.compile(r"sizeInBytes=([\d.E+]+) ([KMGTPE]i)?B")
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SIDE = re.compile(r"^(?::-|\+-) (.*)$", re.MULTILINE)


class Expected(NamedTuple):
    """What Spark says of two sides."""

    left_bytes: float  # infinite where it does not say
    right_bytes: float
    hinted: bool  # whether there may be a hint on how to join them


def expected_of(left: DataFrame, right: DataFrame) -> Expected:
    """Ask Spark, which takes as long as planning a query."""
    # One question for both takes half the time. A join's sides, unlike a union's, stay two.
    words = _words("{left} cross join {right}", left=left, right=right)
    plan = words.split("== Physical Plan ==")[0].partition("\n")[2]
    sides = [_bytes(found) for found in _SIDE.findall(plan)]
    if plan.startswith("Join Cross,") and len(sides) == 2 and math.isfinite(sum(sides)):
        return Expected(sides[0], sides[1], "Hint=(" in plan.partition("\n")[0])
    # What is known to be empty makes the join vanish.
    return Expected(_bytes(_words("{df}", df=left)), _bytes(_words("{df}", df=right)), True)


def _words(what: str, **frames: DataFrame) -> str:
    found = answer_of(f"explain cost select * from {what}", **frames)
    return "" if found is None else str(found[0])


def _bytes(words: str) -> float:
    found = _BYTES.search(words)
    return math.inf if found is None else float(found[1]) * 1024 ** _UNITS.index(found[2] or "")
