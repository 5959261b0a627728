"""The workers' queues: until when each worker is busy, and which messages still wait.

Time is counted in mean arrival intervals. A worker serves in order of arrival, so when a message
arrives its start and finish are known: it starts when it has come and all before it are done, and
takes its cost ÷ the capacity in force when it starts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.hashing import hash_long
from skewless.schemes.api import F64, I64
from skewless.sketch.key_table import KeyTable, slot_of

NONE = np.int64(-1)


class World(NamedTuple):
    """What does not change during a run."""

    sources: int
    slowness: F64  # [k + 1, W] time per unit of cost, before and after each change
    change_at: F64  # [k] when the capacities change
    delay: float  # from a finish to the source's ear
    merge_every: float  # time between two aggregations, 0 for none
    merge_cost: float  # of each key held


class Queues(NamedTuple):
    """Where every worker stands; waiting messages are nodes of linked lists in one pool."""

    free_at: F64  # [W] when all that it got is done
    waiting: I64  # [W] messages not known to be finished
    oldest: I64  # [W] node of the first of them
    newest: I64  # [W] node of the last
    era: I64  # [W] changes of capacity passed
    served: I64  # [W] messages
    busy: F64  # [W] time, finished or not
    latency: F64  # [W] summed
    longest: I64  # [W] queue seen
    finishes: F64  # [p] of each node
    following: I64  # [p] node
    unused: I64  # [1] first node of the list of free ones
    merges: I64  # [W] aggregations past
    held: I64  # [W] keys since the last one
    pairs: KeyTable  # hash of key and worker -> aggregation in which it was last held


def new_queues(workers: int, pool: int, pairs: KeyTable) -> Queues:
    """Everybody idle."""
    following = np.arange(1, pool + 1)
    following[-1] = NONE
    return Queues(
        free_at=np.zeros(workers),
        waiting=np.zeros(workers, np.int64),
        oldest=np.full(workers, NONE),
        newest=np.full(workers, NONE),
        era=np.zeros(workers, np.int64),
        served=np.zeros(workers, np.int64),
        busy=np.zeros(workers),
        latency=np.zeros(workers),
        longest=np.zeros(workers, np.int64),
        finishes=np.zeros(pool),
        following=following,
        unused=np.zeros(1, np.int64),
        merges=np.zeros(workers, np.int64),
        held=np.zeros(workers, np.int64),
        pairs=pairs,
    )


def grown_pool(queues: Queues) -> Queues:
    """The same queues with twice the nodes."""
    old = queues.finishes.size
    following = np.append(queues.following, np.arange(old + 1, 2 * old + 1))
    following[-1] = queues.unused[0]
    return queues._replace(
        finishes=np.append(queues.finishes, np.zeros(old)),
        following=following,
        unused=np.array([old]),
    )


@inlined
def has_room(queues: Any) -> bool:
    """For one more message."""
    pairs = queues.pairs
    return queues.unused[0] != NONE and 2 * pairs.used[0] < pairs.keys.size


@inlined
def work_off(world: Any, queues: Any, worker: int, now: float) -> None:
    """Enter the aggregation due by now, and take out of the queue what is finished by now."""
    if world.merge_every > 0:
        _merge(world, queues, worker, now)
    oldest, waiting, unused = queues.oldest[worker], queues.waiting[worker], queues.unused[0]
    while waiting > 0 and queues.finishes[oldest] <= now:
        beyond = queues.following[oldest]
        queues.following[oldest] = unused
        unused = oldest
        oldest = beyond
        waiting -= 1
    queues.oldest[worker], queues.waiting[worker], queues.unused[0] = oldest, waiting, unused


@inlined
def enter(
    world: Any, queues: Any, worker: int, key: np.uint64, cost: float, now: float
) -> tuple[float, float]:
    """Put a message at the end of a worker's queue: the time it is served for, and its finish."""
    if world.merge_every > 0:
        _hold(queues, worker, key)
    begin = max(now, queues.free_at[worker])
    service = cost * world.slowness[_era(world, queues, worker, begin), worker]
    finish = begin + service
    node = queues.unused[0]
    queues.unused[0] = queues.following[node]
    queues.finishes[node] = finish
    waiting = queues.waiting[worker]
    if waiting > 0:
        queues.following[queues.newest[worker]] = node
    else:
        queues.oldest[worker] = node
    queues.newest[worker] = node
    queues.waiting[worker] = waiting + 1
    queues.free_at[worker] = finish
    queues.longest[worker] = max(queues.longest[worker], waiting + 1)
    queues.served[worker] += 1
    queues.busy[worker] += service
    queues.latency[worker] += finish - now
    return service, finish


@inlined
def _merge(world: Any, queues: Any, worker: int, now: float) -> None:
    """Enter the aggregation that was due by now into the worker's queue."""
    every = world.merge_every
    merges = np.int64(now / every)
    # Rounding must not part the count of merges from their times.
    merges += np.int64((merges + 1) * every <= now) - np.int64(merges * every > now)
    if merges > queues.merges[worker]:
        if queues.held[worker]:
            begin = max((queues.merges[worker] + 1) * every, queues.free_at[worker])
            era = _era(world, queues, worker, begin)
            work = queues.held[worker] * world.merge_cost * world.slowness[era, worker]
            queues.free_at[worker] = begin + work
            queues.busy[worker] += work
        queues.held[worker] = 0
        queues.merges[worker] = merges


@inlined
def _hold(queues: Any, worker: int, key: np.uint64) -> None:
    """Count the key if the worker has not had it since its last aggregation."""
    table, merges = queues.pairs, queues.merges[worker]
    pair = hash_long(key, np.uint64(worker))
    slot = slot_of(table.keys, table.values, pair)
    if table.values[slot] != merges:
        if table.values[slot] < 0:
            table.keys[slot] = pair
            table.used[0] += 1
        table.values[slot] = merges
        queues.held[worker] += 1


@inlined
def _era(world: Any, queues: Any, worker: int, begin: float) -> int:
    """Changes of capacity before this time; a worker asks for later and later times."""
    era = queues.era[worker]
    while era < world.change_at.size and begin >= world.change_at[era]:
        era += 1
    queues.era[worker] = era
    return era


@compiled
def settle(world: World, queues: Queues, now: float) -> None:
    """Work off all queues."""
    for worker in range(queues.waiting.size):
        work_off(world, queues, worker, now)


@allocating
def time_beyond(queues: Queues, now: float) -> F64:
    """For each worker, what its waiting messages will yet add to the summed latency after now."""
    out = np.zeros(queues.waiting.size)
    for worker in range(out.size):
        node = queues.oldest[worker]
        for _ in range(queues.waiting[worker]):
            out[worker] += queues.finishes[node] - now
            node = queues.following[node]
    return out
