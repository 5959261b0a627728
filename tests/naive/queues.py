"""The queues event by event: one heap, one list per worker, everything at its own time."""

import heapq
from collections import deque
from dataclasses import dataclass, field

import numpy as np

FINISH, HEAR, MERGE, ARRIVE = range(4)


@dataclass
class Worker:
    number: int
    queue: deque = field(default_factory=deque)
    busy: bool = False
    held: set = field(default_factory=set)


@dataclass
class Seen:
    workers: list
    latencies: list
    queues: list  # at a message's worker when it has come
    signals: int  # sent, also those still on their way at the end
    queued: int  # when the last message has come
    busy: list  # until then
    tallies: list


def run(scheme, keys, costs, times, stages, change_at, delay, sources, seed, merge=(0, 0)):
    """stages: capacities before and after each change, in cost per mean arrival interval."""
    plan = scheme.plan(len(stages[0]), seed)
    tallies = [scheme.reserve(scheme.tally(plan, s), len(keys)) for s in range(sources)]
    gauge = scheme.gauge(plan)
    workers = [Worker(w) for w in range(len(stages[0]))]
    chosen, latencies, queues = [None] * len(keys), [None] * len(keys), [None] * len(keys)
    services = []  # worker, begin, finish
    signal = np.zeros(getattr(scheme, "signal_floats", 1))
    note = np.zeros(1)
    events = [(t, ARRIVE, i, i) for i, t in enumerate(times)]
    if merge[0]:
        due = [k * merge[0] for k in range(1, int(times[-1] / merge[0]) + 2)]
        events += [(t, MERGE, 0, None) for t in due if t <= times[-1]]
    heapq.heapify(events)
    signals = 0

    def capacity(worker, now):
        return stages[sum(now >= t for t in change_at)][worker]

    def begin(worker, now):
        if worker.busy or not worker.queue:
            return
        worker.busy = True
        message, cost, _ = worker.queue[0]
        service = cost / capacity(worker.number, now)
        services.append((worker.number, now, now + service))
        heapq.heappush(events, (now + service, FINISH, message, (worker.number, service)))

    while events:
        now, what, number, about = heapq.heappop(events)
        if what == ARRIVE:
            source = number % sources
            key = np.uint64(keys[number])
            w = int(scheme.choose(plan, tallies[source], key, 1.0, now))
            marked = scheme.mark(plan, tallies[source], w, note)
            workers[w].queue.append((number, costs[number], marked))
            workers[w].held.add(keys[number])
            chosen[number] = w
            queues[number] = sum(message >= 0 for message, _, _ in workers[w].queue)
            begin(workers[w], now)
        elif what == MERGE:
            for worker in workers:
                worker.queue.append((-1, len(worker.held) * merge[1], False))
                worker.held.clear()
                begin(worker, now)
        elif what == FINISH:
            w, service = about
            message, _, marked = workers[w].queue.popleft()
            workers[w].busy = False
            if message >= 0:
                latencies[message] = now - times[message]
                key = np.uint64(keys[message])
                kind = scheme.serve(plan, gauge, w, key, service, now, marked, note, signal)
                if kind:
                    signals += 1
                    about = (message % sources, w, kind, signal.copy())
                    heapq.heappush(events, (now + delay, HEAR, message, about))
            begin(workers[w], now)
        else:
            source, w, kind, said = about
            scheme.hear(plan, tallies[source], w, kind, said, now)
    end = times[-1]
    busy = [0.0] * len(workers)
    for w, first, last in services:
        busy[w] += max(0.0, min(last, end) - first)
    queued = sum(t + latency > end for t, latency in zip(times, latencies, strict=True))
    return Seen(chosen, latencies, queues, signals, queued, busy, tallies)
