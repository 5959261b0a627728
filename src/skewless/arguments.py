"""Numbers that a user gave, or one sentence that they are none."""

from __future__ import annotations

import numbers
from operator import index
from typing import Any

from skewless.errors import SkewlessError, brief


def whole(what: str, value: Any) -> int:
    """The whole number as an int, of whatever kind it is."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise SkewlessError(f"{what} is a whole number, not {brief(value)}.")
    return index(value)


def number(what: str, value: Any) -> float:
    """The number as a float, of whatever kind it is."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise SkewlessError(f"{what} is a number, not {brief(value)}.")
    return float(value)
