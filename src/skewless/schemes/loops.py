"""Hosts' loops over a scheme's compiled steps, compiled once per scheme.

A function handed to a compiled function as an argument is neither inlined nor kept across processes
by numba. So a host writes its loop as a plain function that calls `choose`, `mark`, `serve` and
`hear` as if they were its module's; `specialise` makes a copy of it in which they are a scheme's.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from skewless.compiled import compiled

STEPS = ("choose", "mark", "serve", "hear")


def specialise(loop: Callable[..., Any], scheme: type) -> Callable[..., Any]:
    """The loop compiled with this scheme's steps."""
    plain = cast(FunctionType, loop)
    name = f"{plain.__name__}_{scheme.__name__}"
    steps = {step: getattr(scheme, step) for step in STEPS}
    copy = FunctionType(
        plain.__code__.replace(co_name=name, co_qualname=name), plain.__globals__ | steps, name
    )
    copy.__qualname__ = name
    copy.__module__ = plain.__module__
    return compiled(copy)


def route(plan: Any, tally: Any, keys: Any, weights: Any, times: Any, out: Any) -> None:
    """Choose for every message of one source; a single weight is that of all."""
    step = 1 if weights.size == keys.size else 0
    for i in range(keys.size):
        out[i] = choose(plan, tally, keys[i], weights[i * step], times[i])  # type: ignore[name-defined]  # noqa: F821
