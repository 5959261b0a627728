"""What `balanced_map` gives: a DataFrame that knows of its first wave, and lets go of it."""

from __future__ import annotations

import contextlib
import threading
import weakref
from functools import cache
from types import TracebackType
from typing import Any, cast

from pyspark.sql import DataFrame


class BalancedFrame(DataFrame):
    """What `balanced_map` returns: a DataFrame whose first wave is already computed and persisted.

    The first wave is freed at the end of a `with` block, or when this object is dropped, whichever
    comes first. Anything derived from it stays valid, but Spark then computes the first wave again.
    So keep this object as long as you use what you derive from it.
    """

    _let_go: Any

    def __enter__(self) -> BalancedFrame:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        held = self._let_go.detach()
        if held is not None:
            _, _, (first,), _ = held
            _unpersist(first)


def balanced_frame(result: DataFrame, first: DataFrame | None) -> BalancedFrame:
    """The same DataFrame, as one that lets go of what it has persisted.

    It changes its class instead of being wrapped: a wrapper would be no DataFrame to Spark.
    """
    frame = cast(BalancedFrame, result)
    kind: Any = type(result)
    frame.__class__ = _balanced(kind)
    frame._let_go = weakref.finalize(frame, _unpersist_aside, first)
    frame._let_go.atexit = False  # Spark frees all there is when it stops
    return frame


@cache
def _balanced(kind: Any) -> type[BalancedFrame]:
    """The class for DataFrames of this kind: Spark has one of its own for Connect."""
    return type("BalancedFrame", (BalancedFrame, kind), {"__module__": __name__})


def _unpersist_aside(first: DataFrame | None) -> None:
    """In a thread of its own: an object is dropped at any moment, also while Spark is spoken to."""
    if first is not None:
        with contextlib.suppress(RuntimeError):  # Python is about to end
            threading.Thread(target=_unpersist, args=(first,), daemon=True).start()


def _unpersist(first: DataFrame | None) -> None:
    if first is not None:
        with contextlib.suppress(Exception):  # the session may have ended before
            first.unpersist()
