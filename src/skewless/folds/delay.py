"""A fold whose messages cost time: the artificial delay with which the papers model slow work.

Workers of unequal speed make one machine behave like several that differ.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence

import pyarrow as pa

from skewless.arguments import number
from skewless.errors import SkewlessError
from skewless.folds.api import Fold, NativeMerge
from skewless.folds.groups import Groups


class Sleeping(Fold):
    """Another fold that takes `delay_ms` per message.

    It sleeps once per batch, for all its messages together: a single sleep of 50 µs takes 120.

    speeds: the speed of each worker, 1 if not given: at 0.3 a message takes delay_ms ÷ 0.3
    """

    def __init__(self, fold: Fold, delay_ms: float, speeds: Sequence[float] | None = None) -> None:
        if not isinstance(fold, Fold):
            raise SkewlessError(f"sleeping takes a fold, such as folds.count(), not {fold!r}.")
        self.fold = fold
        self.delay_ms = check_delay(delay_ms)
        self.speeds = None if speeds is None else check_speeds(speeds)
        self.name, self._named = fold.name, fold._named
        self.columns = fold.columns
        self.tolerance, self.compares = fold.tolerance, fold.compares

    def over(self, columns: Sequence[str]) -> Fold:
        """The same with the inner fold over these columns."""
        own = super().over(columns)
        own.fold = self.fold.over(columns)  # type: ignore[attr-defined]
        return own

    def describe(self, types: Sequence[str]) -> str:
        """The inner fold's: how long it takes changes no partial."""
        return self.fold.describe(types)

    def with_overflow(self, raises: bool) -> Fold:
        """The same with the inner fold as the setting wants it."""
        own = copy.copy(self)
        own.fold = self.fold.with_overflow(raises)
        return own

    def on_worker(self, worker: int) -> Fold:
        """The same with the delay of this worker's speed."""
        own = copy.copy(self)
        own.fold, own.speeds = self.fold.on_worker(worker), None
        if self.speeds is not None:
            if worker >= len(self.speeds):
                raise SkewlessError(
                    f"There are {len(self.speeds)} speeds and none for worker {worker}: "
                    "give a speed for each worker."
                )
            own.delay_ms = self.delay_ms / self.speeds[worker]
        return own

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The inner fold's."""
        return self.fold.partial_types(types)

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The inner fold's."""
        return self.fold.result_type(types)

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Sleep for every message, then reduce."""
        time.sleep(self.delay_ms / 1000 * groups.ids.size)
        return self.fold.reduce_groups(groups, columns)

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Merging costs nothing extra."""
        return self.fold.merge_groups(groups, partials)

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """The inner fold's."""
        return self.fold.finish_groups(partials)

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge | None:
        """The inner fold's."""
        return self.fold.native(types)


def check_delay(delay_ms: float) -> float:
    """The delay, or one sentence about one that cannot be."""
    if not 0 <= number("A delay per message", delay_ms) < math.inf:
        raise SkewlessError(f"A delay per message is 0 ms or more, not {delay_ms}.")
    return delay_ms


def check_speeds(speeds: Sequence[float]) -> tuple[float, ...]:
    """The speeds, or one sentence about one that is none."""
    for speed in speeds:
        if not 0 < number("A worker's speed", speed) < math.inf:
            raise SkewlessError(f"A worker's speed is a number above 0, not {speed}.")
    return tuple(speeds)
