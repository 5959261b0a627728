"""The workers that keys have used, as lists, of which each message of a key looks at the next four.

A key that left its first choice has a place of its own, with a list of the workers that it has used
since. A message takes the least loaded of four in a row, the next message of the key the four after
them: so all are filled alike, at the same cost for four workers as for a thousand, and without a
branch that the processor could not foresee, which would cost as much time as all the rest. Only if
all four are full is the whole list looked at.

The places are a table without chains: the later of two keys that have the same place takes it, and
the other is where its first choice puts it, as a key that never moved. Lists lie in a pool, one
after the other. A list that has no room left moves to where there is twice as much. If the pool has
no room left, all places are given up: keys begin again with their first choices, in the same order.
The pool's first four are worker 0 for ever. A place that nobody has leads there: the next four are
loaded before it is known whose the place is, and what is no worker would be beyond the loads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of, pick
from skewless.hashing import next_choice, stride
from skewless.schemes.api import F64, I64, U64

U32 = npt.NDArray[np.uint32]

LOOKS = 4  # of a key's own workers, by each of its messages
SHORTEST = 8  # room of a list at first
POOL = 1 << 18  # room of all lists, unless so many workers need more
_KEY, _LIST = range(2)  # columns of a place
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)


class Places(NamedTuple):
    """Who has used which workers.

    A place's columns have two halves each: whose it is and where in the pool the list begins; and
    how long the list is and whose turn it is in it. A list is followed by its first three once
    more, so that there are always four in a row, and preceded by the room that it has.
    """

    keys: U64  # [places, 2]
    pool: U32  # [room]
    taken: I64  # [1] of the pool


def empty_places(places: int, workers: int, room: int = POOL) -> Places:
    """So many places (a power of two) that nobody has, and room for at least a list of all."""
    pool = np.zeros(LOOKS + max(room, 8 * (workers + LOOKS)), np.uint32)
    return Places(np.zeros((places, 2), np.uint64), pool, np.full(1, LOOKS, np.int64))


@inlined
def _tag_of(hashed: np.uint64) -> np.uint64:
    """Whose a place is: never 0, which is nobody's."""
    return (hashed >> _HALF) | _ONE


@inlined
def place_of(places: Places, hashed: np.uint64) -> tuple[np.uint64, bool]:
    """The number of the key's place, and whether it is known there."""
    number = hashed & np.uint64(places.keys.shape[0] - 1)
    return number, places.keys[number, _KEY] >> _HALF == _tag_of(hashed)


@inlined
def _less_loaded(loads: F64, one: np.uint32, other: np.uint32) -> tuple[np.uint64, float]:
    """The less loaded of two workers, of equals the one, and its load."""
    load, others = loads[np.uint64(one)], loads[np.uint64(other)]
    less = others < load
    return pick(less, np.uint64(other), np.uint64(one)), pick(less, others, load)


@inlined
def next_own(places: Places, loads: F64, number: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The least loaded of a known key's next four, and what its list's column is after them."""
    pool, entry = places.pool, places.keys[number, _LIST]
    at, length = entry & _LOW, entry >> _HALF
    start = (places.keys[number, _KEY] & _LOW) + at
    first, least = _less_loaded(loads, pool[start], pool[start + _ONE])
    third, load = _less_loaded(loads, pool[start + np.uint64(2)], pool[start + np.uint64(3)])
    at += np.uint64(LOOKS)
    turn = pick(at < length, at, np.uint64(0))
    return pick(load < least, third, first), (length << _HALF) | turn


@inlined
def keep_turn(places: Places, number: np.uint64, known: bool, entry: np.uint64) -> None:
    """A known key's list is as `next_own` said; where the key is not known, nothing."""
    places.keys[number, _LIST] = pick(known, entry, places.keys[number, _LIST])


@compiled
def own_that_fits(places: Places, loads: F64, number: np.uint64, full: float) -> np.int64:
    """A known key's next worker with a load below `full`, whose turn is over then, or −1."""
    start, entry = places.keys[number, _KEY] & _LOW, places.keys[number, _LIST]
    at, length = entry & _LOW, entry >> _HALF
    for _ in range(length):
        worker = np.int64(places.pool[start + at])
        at = at + _ONE if at + _ONE < length else np.uint64(0)
        if loads[worker] < full:
            places.keys[number, _LIST] = (length << _HALF) | at
            return worker
    return np.int64(-1)


@inlined
def next_that_fits(
    loads: F64, first: np.int64, second: np.int64, prime: np.int64, full: float
) -> np.int64:
    """The first in a key's order of choices with a load below `full`, or its first choice."""
    workers, worker = np.int64(loads.size), first
    step = stride(first, second, prime)
    for _ in range(workers if workers > 1 else 0):
        if loads[worker] < full:
            break
        worker = next_choice(worker, step, workers, prime)
    return worker


@compiled
def remember(
    places: Places, number: np.uint64, hashed: np.uint64, first: np.int64, worker: np.int64
) -> None:
    """The worker is the key's own; if its place was another's, it is the key's from now on."""
    keys, pool = places.keys, places.pool
    length = keys[number, _LIST] >> _HALF
    if places.taken[0] + 2 * np.int64(length) + 4 * SHORTEST > pool.size:
        _give_up_all(places)
    if keys[number, _KEY] == 0:
        keys[number, _KEY] = _room_for(places, np.int64(SHORTEST))
    start = keys[number, _KEY] & _LOW
    if keys[number, _KEY] >> _HALF != _tag_of(hashed):
        keys[number, _KEY] = (_tag_of(hashed) << _HALF) | start
        keys[number, _LIST] = np.uint64(0)
        _append(places, number, np.uint32(first))
        named = worker == first
    else:
        named = _names(pool, start, keys[number, _LIST] >> _HALF, np.uint32(worker))
    if not named:
        _append(places, number, np.uint32(worker))


@inlined
def _names(pool: U32, start: np.uint64, length: np.uint64, worker: np.uint32) -> bool:
    """Whether a list has a worker: all are compared, for that way it takes many at a time."""
    times = np.uint32(0)
    for i in range(length):
        times += np.uint32(pool[start + i] == worker)
    return times != np.uint32(0)


@compiled
def _append(places: Places, number: np.uint64, worker: np.uint32) -> None:
    """Put a worker at the end of a list, and the list's first three behind it."""
    keys, pool = places.keys, places.pool
    start, entry = keys[number, _KEY] & _LOW, keys[number, _LIST]
    length = entry >> _HALF
    room = np.uint64(pool[start - _ONE])
    if length + np.uint64(LOOKS) > room:
        before, start = start, _room_for(places, 2 * np.int64(room))
        for i in range(length):
            pool[start + i] = pool[before + i]
        keys[number, _KEY] = (keys[number, _KEY] & ~_LOW) | start
    pool[start + length] = worker
    length += _ONE
    for i in range(np.uint64(LOOKS - 1)):
        pool[start + length + i] = pool[start + i]
    keys[number, _LIST] = (length << _HALF) | (entry & _LOW)


@inlined
def _room_for(places: Places, room: np.int64) -> np.uint64:
    """Where in the pool a list with so much room may begin."""
    start = np.uint64(places.taken[0] + 1)
    places.pool[start - _ONE] = np.uint32(room)
    places.taken[0] += room + 1
    return start


@inlined
def _give_up_all(places: Places) -> None:
    """All keys are as if they had never moved."""
    for number in range(places.keys.shape[0]):
        places.keys[number, _KEY] = 0
        places.keys[number, _LIST] = 0
    places.taken[0] = LOOKS


@compiled
def least_loaded(loads: F64) -> int:
    """The worker with the least load, of equals the first; the last, if no load is a number."""
    worker, least = 0, least_of(loads)
    while loads[worker] != least and worker + 1 < loads.size:
        worker += 1
    return worker
