"""The compiled loop over messages: no object per event.

When a message arrives, the queue of its worker knows when it will be done. The worker's `serve` is
called there and then, in the worker's own order, with `now` the time of the finish; a signal it
gives waits on the wire until `delay` after that time and is heard before the first message that
comes no earlier; signals due at one time are heard in the order of their messages.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from skewless.schemes.api import F64, I32, U64
from skewless.simulate.queue.queues import Queues, World, enter, has_room, work_off
from skewless.simulate.queue.shelf import Shelf, take
from skewless.simulate.queue.wire import Wire, receive, send


class Routing(NamedTuple):
    """A scheme's state, and what its messages and signals are written on."""

    plan: Any
    shelf: Shelf  # the tallies of the sources
    like: Any  # any of them, for its type
    gauge: Any
    note: F64
    signal: F64


class System(NamedTuple):
    """What a scheme routes to, and how it hears of it."""

    world: World
    queues: Queues
    wire: Wire


class Span(NamedTuple):
    """Consecutive messages to put through, and what became of them."""

    first: int  # number of the first of them in the stream
    keys: U64  # [n]
    weights: F64  # [n]
    costs: F64  # [n]
    times: F64  # [n]
    workers: I32  # [n] out
    latencies: F64  # [n] out


def queue_loop(routing: Routing, system: System, span: Span, start: int) -> int:
    """Put messages through from `start` on; where it stopped for want of room."""
    plan, shelf, like, gauge, note, signal = routing
    world, queues, wire = system
    source = (span.first + start) % world.sources
    for i in range(start, span.keys.size):
        if not has_room(queues) or wire.counts[0] == wire.due.size:
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
        work_off(world, queues, worker, now)
        service, finish = enter(world, queues, worker, key, span.costs[i], now)
        span.workers[i] = worker
        span.latencies[i] = finish - now
        kind = serve(plan, gauge, worker, key, service, finish, marked, note, signal)  # type: ignore[name-defined]  # noqa: F821
        if kind != 0:
            send(wire, finish + world.delay, worker, source, kind, signal)
        source += 1
        if source == world.sources:
            source = 0
    return int(span.keys.size)
