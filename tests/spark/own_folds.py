"""Folds of one's own, in a module that Spark's Python workers can import."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from skewless.folds import PerKeyFold


class Longest(PerKeyFold):
    """The length of the longest text."""

    name = "longest"
    columns = ("s",)
    result = pa.int64()

    def zero(self) -> int:
        return -1

    def reduce(self, state: int, s: pa.Array) -> int:
        return max([state, *(len(text) for text in s.to_pylist() if text is not None)])

    def merge(self, a: int, b: int) -> int:
        return max(a, b)

    def finish(self, state: int) -> int | None:
        return None if state < 0 else state


class Lawless(Longest):
    """The last state wins: the result depends on who came last."""

    name = "lawless"

    def merge(self, a: Any, b: Any) -> Any:
        return b


class Rows(PerKeyFold):
    """How many messages, counted in Python."""

    name = "rows"
    result = pa.int64()

    def __init__(self, column: str) -> None:
        self.columns = (column,)

    def zero(self) -> int:
        return 0

    def reduce(self, state: int, values: pa.Array) -> int:
        return state + len(values)

    def merge(self, a: int, b: int) -> int:
        return a + b

    def finish(self, state: int) -> int:
        return state
