"""A fold of your own: four Python functions over one key's state.

    class Spread(PerKeyFold):
        name = "spread"
        columns = ("x",)
        result = pa.float64()

        def zero(self):
            return None
        def reduce(self, state, x):
            return self.merge(state, (pc.min(x).as_py(), pc.max(x).as_py()))
        def merge(self, a, b):
            if a is None or b is None:
                return b if a is None else a
            return min(a[0], b[0]), max(a[1], b[1])
        def finish(self, state):
            return state[1] - state[0]

Check it once with `check_fold(Spread(), {"x": [1.0, 5.0, 2.0]})`.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.folds.api import Fold
from skewless.folds.groups import Groups, bounds


class PerKeyFold(Fold):
    """Subclass it with `name`, `columns`, `result` and the four functions below.

    `reduce` is called once per key and batch with that key's values, an Arrow array per column,
    never once per message. A state is any Python object that pickles; `merge` must be associative
    and commutative with `zero()` as identity, since nobody knows how messages will be split.
    """

    result: pa.DataType
    """The Arrow type of what `finish` returns."""

    @abstractmethod
    def zero(self) -> Any:
        """The state before any message."""

    @abstractmethod
    def reduce(self, state: Any, *columns: pa.Array) -> Any:
        """The state after these messages."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> Any:
        """Two states of the same key as one."""

    @abstractmethod
    def finish(self, state: Any) -> Any:
        """The result of a state."""

    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The pickled state."""
        if not types:
            raise SkewlessError(
                f"Fold '{self.name}' has no columns, so its `reduce` would see no messages: name "
                "at least one in `columns`."
            )
        if not isinstance(getattr(self, "result", None), pa.DataType):
            raise SkewlessError(
                f"Fold '{self.name}' must say the Arrow type of its result: "
                "set `result`, for example to pyarrow.float64()."
            )
        return [pa.binary()]

    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """What the subclass says."""
        return self.result

    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """One state per group."""
        order, starts = bounds(groups)
        ordered = [column.take(pa.array(order)) for column in columns]
        states = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            state = self.zero()
            if stop > start:
                state = self.reduce(state, *(c.slice(start, stop - start) for c in ordered))
            states.append(state)
        return [_pickled(states)]

    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """The states of each group, one after the other."""
        order, starts = bounds(groups)
        ordered = partials[0].take(pa.array(order)).to_pylist()
        merged = []
        for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            if stop - start == 1:
                merged.append(ordered[start])
                continue
            state = pickle.loads(ordered[start])
            for other in ordered[start + 1 : stop]:
                state = self.merge(state, pickle.loads(other))
            merged.append(pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
        return [pa.array(merged, pa.binary())]

    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """One result per state."""
        results = [self.finish(pickle.loads(state)) for state in partials[0].to_pylist()]
        try:
            return pa.array(results, self.result)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SkewlessError(
                f"Fold '{self.name}' says that its results are of type {self.result}, and its "
                f"`finish` gave others: {error}"
            ) from None


def _pickled(states: Sequence[Any]) -> pa.Array:
    return pa.array([pickle.dumps(s, pickle.HIGHEST_PROTOCOL) for s in states], pa.binary())
