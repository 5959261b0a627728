"""What bits are good for: the first that is set, and comparing floats as whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba.core import cgutils, types
from numba.extending import intrinsic

from skewless.compiled import compiled, inlined


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """The place of the lowest bit that is set, of a uint64; 64 if none is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.uint64(types.uint64), generate


@intrinsic
def pick(typing_context: Any, condition: Any, yes: Any, no: Any) -> Any:
    """One of two values of a type, without a branch: for conditions that cannot be foreseen."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        picked = builder.select(*arguments)
        picked.set_metadata("unpredictable", builder.module.add_metadata([]))
        return picked

    return (yes(types.boolean, yes, yes), generate) if yes == no else None


@inlined
def order_of(value: float) -> np.int64:
    """The bits of a number that is not negative: they are in the same order as the numbers.

    Whole numbers are compared sooner than floats, and the least of many is found many at once.
    """
    return np.float64(value).view(np.int64)


@compiled
def least_of(values: npt.NDArray[np.float64]) -> float:
    """The least of numbers that are not negative."""
    least = order_of(values[0])
    for i in range(1, values.size):
        least = min(least, order_of(values[i]))
    return np.int64(least).view(np.float64)
