"""Hosts' loops over a scheme's compiled steps, compiled per scheme and cached across processes.

A function handed to a compiled function as an argument is neither inlined nor cached on disk by
numba. So a host writes its loop as a plain function that calls `choose`, `mark`, `serve` and
`hear` as if they were its module's; `specialise` makes a copy of it in which they are a scheme's.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from numba import njit

from skewless.sketch.borrowed import borrowed

STEPS = ("choose", "mark", "serve", "hear")


def specialise(loop: Callable[..., Any], scheme: type) -> Callable[..., Any]:
    """The loop compiled with this scheme's steps."""
    plain = cast(FunctionType, loop)
    # The disk cache goes by the name and the loop's own file: so the scheme's file enters the name.
    source = Path(str(sys.modules[scheme.__module__].__file__)).read_bytes()
    digest = hashlib.blake2s(source, digest_size=4).hexdigest()
    name = f"{plain.__name__}_{scheme.__name__}_{digest}"
    steps = {step: getattr(scheme, step) for step in STEPS}
    copy = FunctionType(
        plain.__code__.replace(co_name=name, co_qualname=name), plain.__globals__ | steps, name
    )
    copy.__qualname__ = name
    copy.__module__ = plain.__module__
    return cast(Callable[..., Any], njit(cache=True)(copy))


def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """Choose for every message of one source."""
    plan, tally = borrowed(plan), borrowed(tally)
    for i in range(keys.size):
        out[i] = choose(plan, tally, keys[i], weights[i], times[i])  # type: ignore[name-defined]  # noqa: F821
