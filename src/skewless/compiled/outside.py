"""What a compiled function takes from outside the package, such as the steps of somebody's scheme.

The sources of the package are digested as they are; anything else is not known by its file, which
may be a notebook, so it is told by its bytecode and by the values that are compiled into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str, tuple, np.generic)


def from_outside(function: FunctionType) -> list[Any]:
    """What tells it apart from others of its name, with all that it calls; nothing if all of that
    is the package's own."""
    return list(_facts(function, set()))


def _facts(function: FunctionType, seen: set[FunctionType]) -> Iterator[Any]:
    if function in seen:
        return
    seen.add(function)
    ours = function.__module__.partition(".")[0] == __name__.partition(".")[0]
    code = function.__code__
    if not ours:
        yield code.co_code
        yield [c for c in code.co_consts if not isinstance(c, CodeType)]
    for name, value in _named(function):
        called = getattr(value, "py_func", None)  # of a kernel, or what numba's own decorator made
        if isinstance(called, FunctionType):
            yield from _facts(called, seen)
        elif not ours and isinstance(value, _PLAIN):
            yield name, repr(value)


def _named(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What its globals, modules among them, and its closure hold under the names it uses."""
    names = function.__code__.co_names
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from ((inner, getattr(value, inner, None)) for inner in names)
        else:
            yield name, value
