"""What a fold is: how a worker summarises its messages of a key, and how summaries become one.

A fold works on many keys at once. A **partial** is the summary of some messages of one key: one row
of one or more Arrow columns. Nulls, types and names follow Spark's own aggregates.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from skewless.errors import SkewlessError
from skewless.folds.groups import Groups


@dataclass(frozen=True)
class NativeMerge:
    """How an SQL engine merges and finishes partials by itself; `{i}` names partial column i."""

    merges: tuple[str, ...]
    finish: str


class Fold(ABC):
    """Base of all folds, column-wise. For a fold of your own, see `PerKeyFold`.

    `name` is the result's column, `columns` are the columns that a message brings.
    """

    name: str
    columns: tuple[str, ...] = ()
    tolerance: float = 1e-9
    """By how much (relative) two results may differ and still count as the same."""
    compares: bool = False
    """Whether values are compared with each other, as bytes if they are text."""
    _named: bool = False  # by the user

    def alias(self, name: str) -> Self:
        """The same fold under another result name."""
        if not isinstance(name, str) or not name:
            raise SkewlessError(f"A fold is renamed to a text that is not empty, not to {name!r}.")
        other = copy.copy(self)
        other.name, other._named = name, True
        return other

    def over(self, columns: Sequence[str]) -> Fold:
        """The same fold over columns of these names, which its expressions have got by now."""
        other = copy.copy(self)
        for before, name in zip(self.columns, columns, strict=True):
            if not self._named:
                other.name = other.name.replace(before, name)
        other.columns = tuple(columns)
        return other

    def describe(self, types: Sequence[str]) -> str:
        """What gives a partial its meaning, in words: the kind of fold, its columns and parameters.

        Kept with the state of a stream, which another fold could not read.
        """
        columns = [f"{name} {kind}" for name, kind in zip(self.columns, types, strict=True)]
        classes = [c for c in reversed(type(self).__mro__) if issubclass(c, Fold) and c is not Fold]
        shared = {n: v for c in classes for n, v in vars(c).items() if not n.startswith("_")}
        held = {n: v for n, v in {**shared, **vars(self)}.items() if n not in _ABOUT_RESULTS}
        parameters = [f"{name}={held[name]!r}" for name in sorted(held) if _is_simple(held[name])]
        return f"{type(self).__name__}({', '.join(columns + parameters)})"

    def on_worker(self, worker: int) -> Fold:
        """The fold as this worker runs it: the same, unless it tells workers apart."""
        return self

    def with_overflow(self, raises: bool) -> Fold:
        """The fold as Spark's ANSI setting wants it: does a result that overflows raise?

        If not, a long wraps around and a decimal is null.
        """
        return self

    @abstractmethod
    def partial_types(self, types: Sequence[pa.DataType]) -> list[pa.DataType]:
        """The types of a partial, given those of the columns; refuses what it cannot fold."""

    @abstractmethod
    def result_type(self, types: Sequence[pa.DataType]) -> pa.DataType:
        """The type of the result."""

    @abstractmethod
    def reduce_groups(self, groups: Groups, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Messages to partials: one row per group, a group without messages gets the zero."""

    @abstractmethod
    def merge_groups(self, groups: Groups, partials: Sequence[pa.Array]) -> list[pa.Array]:
        """Partials to fewer partials: one row per group."""

    @abstractmethod
    def finish_groups(self, partials: Sequence[pa.Array]) -> pa.Array:
        """Partials to results, row by row; the caller casts them to the result's type."""

    def native(self, types: Sequence[pa.DataType]) -> NativeMerge | None:
        """How an SQL engine merges the partials itself, or None if only this code can."""
        return None

    def zero_partial(self, types: Sequence[pa.DataType]) -> list[pa.Array]:
        """The partial of no message at all."""
        nothing = [pa.array([], kind) for kind in types]
        return self.reduce_groups(Groups(np.empty(0, np.int64), 1), nothing)


_ABOUT_RESULTS = {"name", "_named", "columns", "tolerance", "compares", "overflow_raises"}


def _is_simple(value: Any) -> bool:
    """Is it a parameter that a text can tell from another?"""
    if isinstance(value, list | tuple):
        return all(map(_is_simple, value))
    return isinstance(value, str | int | float | bool | None)


def refuse(fold: str, column: str, kind: pa.DataType, allowed: str) -> SkewlessError:
    """The error for a column of a type that a fold cannot take."""
    return SkewlessError(
        f"{fold} cannot fold column '{column}' of type {kind}: it takes {allowed}; cast it first."
    )


def is_plain(kind: pa.DataType) -> bool:
    """Can values of this type be told apart and ordered: no lists, structs, maps or months."""
    types = pa.types
    return not (types.is_nested(kind) or types.is_null(kind) or types.is_interval(kind))
