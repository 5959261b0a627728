"""The tallies of many sources on one shelf, from which a kernel takes any without cost.

Sources take turns message by message, so the loop picks another tally each time. Out of a list
that counts references to every array of the tally up and down; a shelf holds bare copies of the
arrays' descriptions. Whoever fills a shelf keeps the tallies alive and refills it when one changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

from skewless.compiled import compiled

Shelf = npt.NDArray[np.uint8]


def _place(context: Any, builder: Any, shelf: Any, number: Any, kind: Any) -> Any:
    array = context.make_array(types.Array(types.uint8, 1, "C"))(context, builder, shelf)
    value = context.get_value_type(kind)
    size = context.get_constant(types.intp, context.get_abi_sizeof(value))
    start = builder.bitcast(array.data, cgutils.voidptr_t)
    place = builder.gep(start, [builder.mul(number, size)])
    return builder.bitcast(place, value.as_pointer())


@intrinsic
def _put(typing_context: Any, shelf: Any, number: Any, state: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, arguments[0], arguments[1], state)
        builder.store(arguments[2], place, align=1)
        return context.get_dummy_value()

    return types.void(shelf, types.intp, state), generate


@intrinsic
def take(typing_context: Any, shelf: Any, number: Any, like: Any) -> Any:
    """The tally of this number; `like` is any tally of the same type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, arguments[0], arguments[1], like)
        return builder.load(place, align=1)

    return like(shelf, types.intp, like), generate


@intrinsic
def _size(typing_context: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_value_type(like))
        )

    return types.intp(like), generate


@compiled
def _fill(shelf: Shelf, number: int, state: Any) -> None:
    _put(shelf, number, state)


@compiled
def _size_of(state: Any) -> int:
    return _size(state)


def shelf_of(tallies: Sequence[Any]) -> Shelf:
    """A shelf with these tallies, all of one type."""
    shelf = np.zeros(max(1, len(tallies) * _size_of(tallies[0])), np.uint8)
    for number, tally in enumerate(tallies):
        _fill(shelf, number, tally)
    return shelf
