"""Signals on their way from workers to sources: a heap by time, ties by the order of sending."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, I64


class Wire(NamedTuple):
    """Signals on their way: a heap by time and number, and what each says."""

    due: F64  # [c] heap
    numbers: I64  # [c] heap
    places: I64  # [c] heap; beyond the signals on their way, the free places
    workers: I64  # [c] by place
    sources: I64  # [c] by place
    kinds: I64  # [c] by place
    signals: F64  # [c, n] by place
    counts: I64  # [2] on their way, sent in all


def new_wire(room: int, floats: int) -> Wire:
    """Nothing on its way."""
    return Wire(
        due=np.zeros(room),
        numbers=np.zeros(room, np.int64),
        places=np.arange(room),
        workers=np.zeros(room, np.int64),
        sources=np.zeros(room, np.int64),
        kinds=np.zeros(room, np.int64),
        signals=np.zeros((room, floats)),
        counts=np.zeros(2, np.int64),
    )


def grown_wire(wire: Wire) -> Wire:
    """The same wire with twice the room."""
    old = wire.due.size
    parts = wire._asdict()
    del parts["counts"]
    doubled = {name: np.concatenate([part, np.zeros_like(part)]) for name, part in parts.items()}
    bigger = wire._replace(**doubled)
    bigger.places[old:] = np.arange(old, 2 * old)
    return bigger


@inlined
def _move(wire: Any, source: int, target: int) -> None:
    wire.due[target] = wire.due[source]
    wire.numbers[target] = wire.numbers[source]
    wire.places[target] = wire.places[source]


@inlined
def _put(wire: Any, at: int, due: float, number: int, place: int) -> None:
    wire.due[at] = due
    wire.numbers[at] = number
    wire.places[at] = place


@compiled
def send(wire: Any, due: float, worker: int, source: int, kind: int, signal: F64) -> None:
    """Put a signal on the wire."""
    at, number = wire.counts[0], wire.counts[1]
    place = wire.places[at]
    wire.workers[place] = worker
    wire.sources[place] = source
    wire.kinds[place] = kind
    for j in range(signal.size):
        wire.signals[place, j] = signal[j]
    wire.counts[0] = at + 1
    wire.counts[1] = number + 1
    # The newest number is the highest, so of equal times the parent stays the earlier.
    while at > 0 and due < wire.due[(at - 1) // 2]:
        _move(wire, (at - 1) // 2, at)
        at = (at - 1) // 2
    _put(wire, at, due, number, place)


@compiled
def receive(wire: Any) -> int:
    """Take the next signal off the wire; its place, valid until the next `send`."""
    taken = wire.places[0]
    last = wire.counts[0] - 1
    wire.counts[0] = last
    due, number, place = wire.due[last], wire.numbers[last], wire.places[last]
    at, child = 0, 1
    while child < last:
        if child + 1 < last and (
            wire.due[child + 1] < wire.due[child]
            or (
                wire.due[child + 1] == wire.due[child]
                and wire.numbers[child + 1] < wire.numbers[child]
            )
        ):
            child += 1
        if due < wire.due[child] or (due == wire.due[child] and number < wire.numbers[child]):
            break
        _move(wire, child, at)
        at, child = child, 2 * child + 1
    _put(wire, at, due, number, place)
    wire.places[last] = taken
    return int(taken)
