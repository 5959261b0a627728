"""Hosts' loops over a scheme's compiled steps, compiled per scheme and cached across processes.

A function handed to a compiled function as an argument is neither inlined nor cached on disk by
numba. So a host writes its loop as a plain function that calls `choose`, `mark`, `serve` and
`hear` as if they were its module's; `specialise` makes a copy of it in which they are a scheme's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from numba import njit

from skewless.sketch.borrowed import borrowed

STEPS = ("choose", "mark", "serve", "hear")


def specialise(loop: Callable[..., Any], scheme: type) -> Callable[..., Any]:
    """The loop compiled with this scheme's steps."""
    plain = cast(FunctionType, loop)
    name = f"{plain.__name__}_{scheme.__name__}_{_digest_of_kernels()}"
    steps = {step: getattr(scheme, step) for step in STEPS}
    copy = FunctionType(
        plain.__code__.replace(co_name=name, co_qualname=name), plain.__globals__ | steps, name
    )
    copy.__qualname__ = name
    copy.__module__ = plain.__module__
    return cast(Callable[..., Any], njit(cache=True)(copy))


@cache
def _digest_of_kernels() -> str:
    """A digest of every file that a step may be compiled from.

    The disk cache goes by a function's name and its own file, and knows nothing of what it inlines.
    """
    package = Path(__file__).parent.parent
    files = [package / "hashing.py", *package.glob("sketch/*.py"), *package.glob("schemes/*.py")]
    digest = hashlib.blake2s(digest_size=4)
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """Choose for every message of one source."""
    plan, tally = borrowed(plan), borrowed(tally)
    for i in range(keys.size):
        out[i] = choose(plan, tally, keys[i], weights[i], times[i])  # type: ignore[name-defined]  # noqa: F821
