"""Machine code that travels with a job, so that executors need not make it.

A name of machine code says for which processor, Python and numba it was compiled, and from which
sources: where an executor differs in any of these it finds nothing under the name that it asks for,
looks in its folders, and compiles if need be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from skewless.compiled import machine_code
from skewless.compiled.store import STORE

Value = TypeVar("Value")
WarmUp = Callable[[], Iterable[Callable[..., Any]]]


class Shipment(Generic[Value]):
    """What a task needs, with the machine code for it."""

    def __init__(self, value: Value, warm_up: WarmUp) -> None:
        """`warm_up` compiles what tasks will call, and names it; called when a job is sent."""
        self.value = value
        self._warm_up = warm_up

    def __reduce__(self) -> tuple[Any, ...]:
        entries: dict[str, bytes] = {}
        for function in self._warm_up():
            entries |= machine_code(function)
        return _arrived, (self.value, entries)


def _arrived(value: Value, entries: Mapping[str, bytes]) -> Shipment[Value]:
    STORE.hand(entries)
    return Shipment(value, lambda: ())
