"""Compiled functions: how they are compiled, and where their machine code is kept.

All of them are made by one of three decorators. Machine code is looked for where it was handed over
with a job, then in folders (see `store`); what is found nowhere is compiled, by one process of a
machine while the others wait, and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba

from skewless.compiled.cache import MachineCode
from skewless.errors import SkewlessError

OLDEST_NUMBA = (0, 61)

if tuple(int(part) for part in numba.__version__.split(".")[:2]) < OLDEST_NUMBA:
    raise SkewlessError(
        f"numba is version {numba.__version__}, but skewless needs "
        f"{'.'.join(map(str, OLDEST_NUMBA))} or later: upgrade it with pip install --upgrade numba."
    )


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates no arrays.

    It counts no references to those that it is given, whose owner is the caller: counting them
    for every message would cost up to ten times the work itself.
    """
    return _kept(numba.njit(_nrt=False, no_cfunc_wrapper=True)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """The same, inlined wherever a compiled function calls it.

    LLVM does so. Numba's own way of inlining takes half as long again to compile, and what it
    makes is no faster.
    """
    return _kept(numba.njit(_nrt=False, forceinline=True, no_cfunc_wrapper=True)(function))


def allocating(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates arrays."""
    # Said outright: numba would let it inherit the setting of the function that calls it.
    return _kept(numba.njit(_nrt=True, no_cfunc_wrapper=True)(function))


def _kept(dispatcher: Any) -> Any:
    # What numba's own `cache=True` does, with a cache of ours: numba's needs a folder that it can
    # write to and a source file, and an executor may have neither.
    dispatcher._cache = MachineCode(dispatcher.py_func)
    return dispatcher


def machine_code(function: Callable[..., Any]) -> dict[str, bytes]:
    """The machine code of a compiled function, for all types that it was called with so far."""
    return cast(MachineCode, cast(Any, function)._cache).entries()
