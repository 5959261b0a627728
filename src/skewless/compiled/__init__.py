"""Compiled functions: how they are compiled, and where their machine code is kept.

All of them are made by one of three decorators. Machine code is looked for where it was handed over
with a job, then in folders (see `store`); what is found nowhere is compiled, by one process of a
machine while the others wait, and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from skewless.compiled.kernel import Kernel


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates no arrays.

    It counts no references to those that it is given, whose owner is the caller: counting them
    for every message would cost up to ten times the work itself.
    """
    return Kernel(function, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """The same, inlined wherever a compiled function calls it.

    LLVM does so. Numba's own way of inlining takes half as long again to compile, and what it
    makes is no faster.
    """
    return Kernel(function, _nrt=False, forceinline=True)


def allocating(function: Callable[..., Any]) -> Any:
    """Compile a function that allocates arrays."""
    # Said outright: numba would let it inherit the setting of the function that calls it.
    return Kernel(function, _nrt=True)


def machine_code(function: Callable[..., Any]) -> dict[str, bytes]:
    """The machine code of a compiled function, for all types that it was called with so far."""
    return cast(Kernel, function).machine_code.entries()
