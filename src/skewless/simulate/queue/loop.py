"""The queues' state and the compiled loop over messages: no object per event.

Time is counted in mean arrival intervals. A worker serves in order of arrival, so when a message
arrives its start and finish are known: it starts when it has come and all before it are done, and
takes its cost ÷ the capacity in force when it starts. The worker's `serve` is called there and
then, in the worker's own order, with `now` the time of the finish; a signal it gives waits on the
wire until `delay` after that time and is heard before the first message that comes no earlier;
signals due at one time are heard in the order of their messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.hashing import hash_long
from skewless.schemes.api import F64, I32, I64, U64
from skewless.simulate.queue.shelf import Shelf, take
from skewless.sketch.key_table import KeyTable, slot_of

NONE = np.int64(-1)


class World(NamedTuple):
    """What does not change during a run."""

    slowness: F64  # [k + 1, W] time per unit of cost, before and after each change
    change_at: F64  # [k] when the capacities change
    delay: F64  # [1] from a finish to the source's ear
    merge_every: F64  # [1] time between two aggregations, 0 for none
    merge_cost: F64  # [1] of each key held


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


class Span(NamedTuple):
    """Consecutive messages to put through, and what became of them."""

    keys: U64  # [n]
    weights: F64  # [n]
    costs: F64  # [n]
    times: F64  # [n]
    workers: I32  # [n] out
    latencies: F64  # [n] out


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


@inlined
def _merge(world: Any, queues: Any, worker: int, now: float) -> None:
    """Enter the aggregation that was due by now into the worker's queue."""
    every = world.merge_every[0]
    merges = np.int64(now / every)
    # Rounding must not part the count of merges from their times.
    merges += np.int64((merges + 1) * every <= now) - np.int64(merges * every > now)
    if merges > queues.merges[worker]:
        if queues.held[worker]:
            begin = max((queues.merges[worker] + 1) * every, queues.free_at[worker])
            era = _era(world, queues, worker, begin)
            work = queues.held[worker] * world.merge_cost[0] * world.slowness[era, worker]
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


def queue_loop(
    plan: Any,
    shelf: Shelf,
    like: Any,
    gauge: Any,
    world: World,
    queues: Queues,
    wire: Wire,
    span: Span,
    note: F64,
    signal: F64,
    start: int,
    first_source: int,
    sources: int,
) -> int:
    """Put messages through from `start` on; where it stopped for want of room."""
    source = first_source
    finishes, following = queues.finishes, queues.following
    room = wire.due.size
    merging = world.merge_every[0] > 0
    pairs_room = queues.pairs.keys.size // 2
    for i in range(start, span.keys.size):
        unused = queues.unused[0]
        if unused < 0 or wire.counts[0] == room or queues.pairs.used[0] >= pairs_room:
            return i
        now = span.times[i]
        while wire.counts[0] > 0 and wire.due[0] <= now:
            due = wire.due[0]
            place = receive(wire)
            hear(  # type: ignore[name-defined]  # noqa: F821
                plan,
                take(shelf, wire.sources[place], like),
                wire.workers[place],
                wire.kinds[place],
                wire.signals[place],
                due,
            )
        key = span.keys[i]
        tally = take(shelf, source, like)
        worker = choose(plan, tally, key, span.weights[i], now)  # type: ignore[name-defined]  # noqa: F821
        marked = mark(plan, tally, worker, note)  # type: ignore[name-defined]  # noqa: F821
        if merging:
            _merge(world, queues, worker, now)
            _hold(queues, worker, key)

        oldest, waiting = queues.oldest[worker], queues.waiting[worker]
        while waiting > 0 and finishes[oldest] <= now:
            beyond = following[oldest]
            following[oldest] = unused
            unused = oldest
            oldest = beyond
            waiting -= 1

        begin = max(now, queues.free_at[worker])
        era = _era(world, queues, worker, begin)
        service = span.costs[i] * world.slowness[era, worker]
        finish = begin + service
        queues.free_at[worker] = finish

        node = unused
        unused = following[node]
        finishes[node] = finish
        if waiting > 0:
            following[queues.newest[worker]] = node
        else:
            oldest = node
        queues.newest[worker] = node
        waiting += 1
        queues.oldest[worker], queues.waiting[worker] = oldest, waiting
        queues.unused[0] = unused
        queues.longest[worker] = max(queues.longest[worker], waiting)
        queues.served[worker] += 1
        queues.busy[worker] += service
        queues.latency[worker] += finish - now
        span.workers[i] = worker
        span.latencies[i] = finish - now

        kind = serve(plan, gauge, worker, key, service, finish, marked, note, signal)  # type: ignore[name-defined]  # noqa: F821
        if kind != 0:
            send(wire, finish + world.delay[0], worker, source, kind, signal)
        source += 1
        if source == sources:
            source = 0
    return int(span.keys.size)


@compiled
def settle(world: World, queues: Queues, now: float) -> None:
    """Take out of the queues what is finished by now, and enter the aggregations due by now."""
    for worker in range(queues.waiting.size):
        if world.merge_every[0] > 0:
            _merge(world, queues, worker, now)
        oldest, waiting = queues.oldest[worker], queues.waiting[worker]
        while waiting > 0 and queues.finishes[oldest] <= now:
            beyond = queues.following[oldest]
            queues.following[oldest] = queues.unused[0]
            queues.unused[0] = oldest
            oldest = beyond
            waiting -= 1
        queues.oldest[worker], queues.waiting[worker] = oldest, waiting


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
