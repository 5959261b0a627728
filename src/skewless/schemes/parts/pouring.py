"""Pouring weighted keys into the room that workers have left, with few keys split.

The lightest come first and stay at home if they fit; the hottest come last and fill the gaps, as in
McNaughton's wrap-around rule for machines (1959). A key that fits nowhere as a whole is cut into
slots of equal weight, and fills workers up one by one. A worker that it leaves has less than a slot
of room and is closed, so that

- all keys together have at most keys + W − 1 (key, worker) pairs: each pair beyond a key's first
  closes a worker, and the last one stays open;
- everything fits if the rooms exceed the weights by W slots: no closed worker wastes a whole one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skewless.schemes.api import F64, I32, I64


def pour(weights: F64, places: Sequence[I32], rooms: F64, slot: float) -> list[I32]:
    """The worker of each slot of each key; a key that is not split has one slot.

    places: the workers that each key has now, at least one
    rooms: what each worker may take, in all more than the weights by W slots
    slot: the most that a slot of a split key may weigh
    """
    left = rooms.copy()
    slots: list[I32] = [np.empty(0, np.int32)] * len(places)
    homeless = []
    for key in np.argsort(weights, kind="stable").tolist():
        home = int(places[key][0])
        if len(places[key]) == 1 and weights[key] <= left[home]:
            left[home] -= weights[key]
            slots[key] = places[key]
        else:
            homeless.append(key)
    for key in homeless:
        widest = int(left.argmax())
        if weights[key] <= left[widest]:
            left[widest] -= weights[key]
            slots[key] = np.array([widest], np.int32)
        else:
            slots[key] = _split(float(weights[key]), places[key], left, slot)
    return slots


def _split(weight: float, places: I32, left: F64, slot: float) -> I32:
    """Cut into slots: to the workers that the key has, then to those with most room."""
    count = math.ceil(weight / slot)
    size = weight / count
    parts = []
    for worker in _own_first(places, left):
        taken = min(count, int(left[worker] / size))
        count -= taken
        parts.append(np.full(taken, worker, np.int32))
        if not count:
            left[worker] -= taken * size
            break
        left[worker] = 0.0
    return np.concatenate(parts)


def _own_first(places: I32, left: F64) -> I64:
    foreign = np.ones(left.size, np.bool_)
    foreign[places] = False
    return np.lexsort((-left, foreign))
