"""Queues in time: route a stream to workers with capacities, and measure how long messages take.

A message's service time is its cost ÷ the capacity of its worker; the mean interval between
arrivals is the mean cost ÷ (load · Σ capacities at the start). Times in results are in those units;
schemes see time, and the time a message took, in mean arrival intervals, so that a scheme's slot of
1000 means a thousand arrivals in every host. Message i comes from source i mod S. Capacities change
when message M is due at the mean rate, for messages that start service from then on. A scheme that
learns the whole stream beforehand does so before time starts; learning from a prefix and replanning
happen on the way, and the prefix is part of all figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skewless import measures
from skewless.errors import SkewlessError
from skewless.hashing import check_seed
from skewless.schemes import Feedback, Scheme, scheme_of
from skewless.schemes.api import F64
from skewless.schemes.loops import specialise
from skewless.simulate.balance import BalanceResult, LoadRecorder
from skewless.simulate.queue.cluster import Cluster
from skewless.simulate.queue.costs import costs_of, poisson_times
from skewless.simulate.queue.elastic import MoveRecorder
from skewless.simulate.queue.loop import Routing, Span, System, queue_loop
from skewless.simulate.queue.queues import World, grown_pool, new_queues, settle, time_beyond
from skewless.simulate.queue.series import LatencyHistogram, Row, Series, SeriesRecorder
from skewless.simulate.queue.shelf import shelf_of
from skewless.simulate.queue.wire import grown_wire, new_wire
from skewless.simulate.replication import Counted, PairCounter
from skewless.simulate.sources import Estimate, Sources, refuse_short
from skewless.sketch.key_table import entries, key_table, reserve, table_of
from skewless.streams import Stream, stream_of

__all__ = ["Cluster", "QueueResult", "QueueRun", "queue"]

SPAN = 1 << 16
_POOL = 1 << 12
_ABSENT = 1e-12  # of the mean capacity
_WIRE = 1 << 8

_LOOPS: dict[type, Any] = {}


@dataclass(frozen=True)
class QueueResult:
    """How long messages took, and how even the work was; `skewless queue --json`."""

    balance: BalanceResult
    load: float
    mean_latency: float
    p50_latency: float
    p99_latency: float
    max_latency: float
    max_queue: int  # messages at one worker, with the one in service
    mean_queue: float  # over time and workers
    utilisation: list[float]  # of each worker until the last arrival
    throughput: float  # messages finished by the last arrival, per unit of time
    finished: int  # by the last arrival
    queued: int  # not finished by then
    control_messages: int  # signals from workers to sources, for all messages that came
    elapsed: float  # time from 0 to the last arrival
    changes: list[dict[str, Any]]  # of the number of workers; in JSON only if there are any
    series: Series
    plan: Any  # the last one
    tallies: list[Any]  # of the sources, at the end

    def as_json(self) -> dict[str, Any]:
        """Plain numbers only; the series through time stay out."""
        hidden = ("balance", "series", "plan", "tallies", *(() if self.changes else ("changes",)))
        own = {name: value for name, value in vars(self).items() if name not in hidden}
        return self.balance.as_json() | own


def queue(
    stream: Stream | str,
    scheme: Scheme | str,
    cluster: Cluster,
    *,
    seed: int = 0,
    replication: bool = True,
    progress: Callable[[int], None] | None = None,
) -> QueueResult:
    """Put a stream through the queues; `progress` is told the messages of each chunk."""
    flow = stream_of(stream)
    cluster.check_length(flow.length())
    run = QueueRun(flow, scheme_of(scheme), cluster, seed, replication)
    for chunk in flow.chunks(seed):
        run.add(chunk.keys)
        if progress:
            progress(chunk.keys.size)
    return run.result()


class QueueRun:
    """One system in time; feed it the keys of a stream in order."""

    def __init__(
        self, stream: Stream, scheme: Scheme, cluster: Cluster, seed: int, replication: bool
    ) -> None:
        check_seed(seed)
        self.stream, self.scheme, self.cluster, self.seed = stream, scheme, cluster, seed
        capacities = cluster.starting_capacities()
        self._costs = costs_of(cluster.costs)
        mean_cost = self._costs.average(stream, seed)
        self.interval = mean_cost / (cluster.load * float(capacities.sum()))
        if cluster.resizes and scheme.learns == "stream":
            raise SkewlessError(
                f"{scheme.name} learns the whole stream for one number of workers: let --change "
                "keep their number, or take another scheme."
            )
        self._world = World(
            sources=cluster.sources,
            slowness=1.0 / (cluster.stages() * self.interval),
            change_at=np.array([float(message) for message, _ in cluster.changes]),
            delay=cluster.delay / self.interval,
            merge_every=cluster.merge_every / self.interval,
            merge_cost=float(cluster.merge_cost),
        )
        self._workers = cluster.workers
        most = cluster.most_workers
        self._queues = new_queues(most, _POOL, key_table())
        # How long a scheme's signals and notes are is the scheme's affair.
        self._wire = new_wire(_WIRE, scheme.signal_floats)
        self._signal = np.zeros(self._wire.signals.shape[1])
        self._note = np.zeros(scheme.note_floats)
        self._knows_costs = scheme.knows_costs
        self._loop = _LOOPS.setdefault(type(scheme), specialise(queue_loop, type(scheme)))
        self._recorder = LoadRecorder(most, self._shares(capacities))
        self._moves = MoveRecorder(cluster.resizes)
        self._pairs = PairCounter(most) if replication else None
        self._histogram = LatencyHistogram()
        self._series = SeriesRecorder(stream.length())
        self._now = 0.0
        self._running_s = 0.0
        self._seen = Feedback.none(cluster.workers)
        self._next_plan = scheme.messages_until_replan(0)
        self._learned = 0
        if scheme.learns == "stream":
            system = Sources(scheme, cluster.workers, cluster.sources, seed, Estimate())
            for chunk in stream.chunks(seed):
                system.route(chunk.keys)
            self._adopt(system.learned_plan())
        else:
            self._adopt(scheme.plan(cluster.workers, seed, capacities))

    @property
    def messages(self) -> int:
        """Messages so far."""
        return self._recorder.messages

    def _shares(self, capacities: F64) -> F64:
        """Of all workers that ever are there: those that are not get next to nothing."""
        absent = np.full(self.cluster.most_workers - capacities.size, _ABSENT * capacities.mean())
        return np.concatenate([capacities, absent])

    def _resize(self, capacities: F64) -> None:
        """Go on with another number of workers; signals on their way are of the old plan."""
        self._workers = capacities.size
        sent = self._wire.counts[1]
        self._wire = new_wire(_WIRE, self.scheme.signal_floats)
        self._wire.counts[1] = sent
        before = self.plan, self.tallies, self._gauge
        self._set(*self.scheme.resized(*before, self._workers, self.seed, capacities, self._now))
        every = self.scheme.learning_messages if self.scheme.learns == "prefix" else 0
        every = every or self.scheme.replan_every
        self._next_plan = self.messages + every if every else 0
        self._seen = self._feedback()

    def _adopt(self, plan: Any) -> None:
        tallies = [self.scheme.tally(plan, s) for s in range(self.cluster.sources)]
        self._set(plan, tallies, self.scheme.gauge(plan))

    def _set(self, plan: Any, tallies: list[Any], gauge: Any) -> None:
        self.plan, self.tallies, self._gauge = plan, tallies, gauge
        self._shelved: list[Any] = []

    def add(self, keys: Any) -> None:
        """Put these messages through."""
        done = 0
        while done < keys.size:
            steps = [SPAN, keys.size - done, self._series.until_next(self.messages)]
            if self._next_plan:
                steps.append(self._next_plan - self.messages)
            for at, capacities in self.cluster.changes:
                if at == self.messages:
                    given = np.asarray(capacities, np.float64)
                    self._recorder.change(self._shares(given))
                    if given.size != self._workers:
                        self._resize(given)
                elif at > self.messages:
                    steps.append(at - self.messages)
            stop = done + min(steps)
            self._add_span(np.ascontiguousarray(keys[done:stop]))
            done = stop

    def _add_span(self, keys: Any) -> None:
        span = self._span(keys)
        self._shelve(keys.size)
        if not self._running_s:
            # Compile, or load what was compiled, before the clock starts.
            self._loop_over(self._span(keys[:0]), 0)
        start_s = time.perf_counter()
        done = self._loop_over(span, 0)
        while done < keys.size:
            self._make_room(float(span.times[done]))
            done = self._loop_over(span, done)
        self._running_s += time.perf_counter() - start_s
        self._now = float(span.times[-1])
        self._moves.add(self.messages, keys, span.workers)
        self._recorder.add(span.workers)
        self._histogram.add(span.latencies)
        if self._pairs:
            self._pairs.add(keys, span.workers)
        if self.messages % self._series.interval == 0:
            self._series.add(self._row())
        if self.messages == self._next_plan:
            self._replan()

    def _loop_over(self, span: Span, start: int) -> int:
        """Put the span's messages through from `start` on; where it stopped for want of room."""
        tallies = self._shelf, self._shelved[0]
        routing = Routing(self.plan, *tallies, self._gauge, self._note, self._signal)
        system = System(self._world, self._queues, self._wire)
        stopped: int = self._loop(routing, system, span, start)
        return stopped

    def _span(self, keys: Any) -> Span:
        costs = self._costs.of(keys, self.messages, self.seed)
        if self.cluster.arrivals == "even":
            times = np.arange(self.messages, self.messages + keys.size, dtype=np.float64)
        else:
            times = poisson_times(self.messages, keys.size, self._now, self.seed)
        weights = costs / self.interval if self._knows_costs else np.ones(keys.size)
        workers = np.empty(keys.size, np.int32)
        return Span(self.messages, keys, weights, costs, times, workers, np.empty(keys.size))

    def _shelve(self, messages: int) -> None:
        """Have all tallies ready with room for the span."""
        tallies = self.tallies
        share = -(-messages // len(tallies))
        for s, tally in enumerate(tallies):
            tallies[s] = self.scheme.reserve(tally, share)
        if len(self._shelved) != len(tallies) or any(
            a is not b for a, b in zip(self._shelved, tallies, strict=True)
        ):
            self._shelf = shelf_of(tallies)
            self._shelved = list(tallies)

    def _make_room(self, now: float) -> None:
        if self._wire.counts[0] == self._wire.due.size:
            self._wire = grown_wire(self._wire)
        settle(self._world, self._queues, now)
        if self._queues.waiting.sum() > self._queues.finishes.size // 2:
            self._queues = grown_pool(self._queues)
        pairs = self._queues.pairs
        if 2 * pairs.used[0] >= pairs.keys.size:
            keys, merges = entries(pairs)
            held = merges >= self._queues.merges.min()
            kept = table_of(keys[held], merges[held])
            self._queues = self._queues._replace(pairs=reserve(kept, keys[held].size + 1))

    def _busy(self) -> F64:
        """Time each worker has spent serving until now."""
        return np.asarray(self._queues.busy - np.maximum(0, self._queues.free_at - self._now))

    def _row(self) -> Row:
        """The workers now."""
        queues = self._queues
        settle(self._world, queues, self._now)
        return Row(
            self.messages,
            self._now,
            queues.waiting.copy(),
            queues.served.copy(),
            self._busy(),
            queues.latency.copy(),
        )

    def _replan(self) -> None:
        if self.scheme.learns == "prefix" and not self._learned:
            self._learned = self.messages
        seen = self._feedback()
        since = seen._replace(
            served=seen.served - self._seen.served, busy_s=seen.busy_s - self._seen.busy_s
        )
        self._seen = seen
        reports = [self.scheme.report(self.plan, tally) for tally in self.tallies]
        self._adopt(self.scheme.replan_from(self.plan, reports, since))
        every = self.scheme.messages_until_replan(1)
        self._next_plan = self.messages + every if every else 0

    def _feedback(self) -> Feedback:
        """What the workers that are there did since the start."""
        settle(self._world, self._queues, self._now)
        there, queues = slice(self._workers), self._queues
        return Feedback(
            (queues.served - queues.waiting)[there].astype(np.float64),
            self._busy()[there] * self.interval,
            queues.waiting[there].astype(np.float64),
            queues.served[there].astype(np.float64),
        )

    def result(self) -> QueueResult:
        """All figures; the run may go on afterwards."""
        if self.scheme.learns == "prefix" and not self._learned:
            refuse_short(self.stream.spec, self.scheme)
        queues, interval = self._queues, self.interval
        row = self._row()
        elapsed = max(self._now, 1e-300)
        queued = int(queues.waiting.sum())
        spent = float(queues.latency.sum())
        series = self._series.series(row, interval)
        in_time = spent - float(time_beyond(queues, self._now).sum())
        return QueueResult(
            balance=self._balance(),
            load=self.cluster.load,
            mean_latency=spent / self.messages * interval,
            p50_latency=self._histogram.percentile(0.5) * interval,
            p99_latency=self._histogram.percentile(0.99) * interval,
            max_latency=self._histogram.most * interval,
            max_queue=int(queues.longest.max()),
            mean_queue=in_time / elapsed / self.cluster.most_workers,
            utilisation=(self._busy() / elapsed).tolist(),
            throughput=(self.messages - queued) / (elapsed * interval),
            finished=self.messages - queued,
            queued=queued,
            control_messages=int(self._wire.counts[1]),
            elapsed=elapsed * interval,
            changes=[one._asdict() for one in self._moves.changed(series)],
            series=series,
            plan=self.plan,
            tallies=list(self.tallies),
        )

    def _balance(self) -> BalanceResult:
        loads, fair = self._recorder.loads, self._recorder.fair
        even = measures.normalised(loads, fair)
        at, excesses = self._recorder.checkpoints()
        counted = self._pairs.count() if self._pairs else Counted(0, 0)
        return BalanceResult(
            stream=self.stream.spec,
            scheme=self.scheme.spec,
            workers=self.cluster.workers,
            sources=self.cluster.sources,
            messages=self.messages,
            keys=counted.keys,
            loads=loads.tolist(),
            imbalance=measures.imbalance(loads, fair),
            average_imbalance=measures.average_imbalance(excesses, self.messages),
            percent_imbalance=measures.percent_imbalance(loads, fair),
            stddev=measures.stddev(even),
            stddev_percent=measures.stddev_percent(even),
            replication=measures.replication(counted.pairs, counted.keys),
            learned=self._learned,
            messages_per_second=self.messages / self._running_s,
            checkpoint_messages=at,
            checkpoint_excesses=excesses,
        )
