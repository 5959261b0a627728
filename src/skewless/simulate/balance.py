"""Balance without time: route a stream, count the loads, measure how even they are.

Memory does not grow with the stream: checkpoints thin themselves out by halves, keys are counted
within a limit (`replication`), and a stream is read chunk by chunk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless import measures
from skewless.compiled import compiled
from skewless.hashing import check_seed
from skewless.schemes import Scheme, scheme_of
from skewless.schemes.api import F64, I32, I64
from skewless.simulate.replication import Counted, PairCounter
from skewless.simulate.sources import Estimate, Sources, refuse_short
from skewless.streams import Chunk, Stream, stream_of

_CHECKPOINTS = 2048  # kept at most; at least half as many once the stream is long enough
_FIRST_INTERVAL = 64


@dataclass(frozen=True)
class BalanceResult:
    """How even a scheme was over one stream; the fields of `skewless simulate --json`."""

    stream: str
    scheme: str
    workers: int
    sources: int
    messages: int
    keys: int
    loads: list[int]
    imbalance: float
    average_imbalance: float
    percent_imbalance: float
    stddev: float
    stddev_percent: float
    replication: float
    learned: int
    messages_per_second: float
    checkpoint_messages: npt.NDArray[np.int64]
    checkpoint_excesses: F64  # max − mean, in messages
    remark: str | None = None  # what the scheme has to say of it; in JSON only if there is any

    def as_json(self) -> dict[str, Any]:
        """Plain numbers only; the series through time stay out."""
        plain = asdict(self)
        del plain["checkpoint_messages"], plain["checkpoint_excesses"]
        if self.remark is None:
            del plain["remark"]
        return plain


class LoadRecorder:
    """Loads so far, and max − mean at evenly spaced checkpoints of a stream of unknown length.

    Of unequal workers the maximum is of loads divided by W times the worker's share of all
    capacity; where capacities change, messages are shared out by those that held when they came.
    """

    def __init__(self, workers: int, capacities: F64 | None = None) -> None:
        self.loads = np.zeros(workers, np.int64)
        self._state = np.array([0, _FIRST_INTERVAL, 0, 0])  # messages, interval, checkpoints, since
        self._maxima = np.zeros(_CHECKPOINTS)
        self._fair = np.zeros(workers)  # W times what each should have got until `since`
        self._rates = np.ones(workers)
        if capacities is not None:
            self.change(capacities)

    def change(self, capacities: F64) -> None:
        """From the next message on workers have these."""
        self._fair, self._state[3] = self.fair, self.messages
        self._rates = capacities / capacities.mean()

    @property
    def fair(self) -> F64:
        """In messages, W times what each worker should have got: what its capacity was worth."""
        return self._fair + self._rates * (self.messages - int(self._state[3]))

    def add(self, workers: I32) -> None:
        """Record these messages' workers."""
        done = 0
        while done < workers.size:
            done = _record(
                self.loads, self._fair, self._rates, workers, done, self._state, self._maxima
            )
            if self._state[2] == _CHECKPOINTS:
                # Full: keep every second checkpoint, at twice the interval.
                self._maxima[: _CHECKPOINTS // 2] = self._maxima[1::2].copy()
                self._state[1] *= 2
                self._state[2] = _CHECKPOINTS // 2

    def warm_up(self) -> None:
        """Compile what `add` needs, or load what was compiled."""
        none = np.empty(0, np.int32)
        _record(self.loads, self._fair, self._rates, none, 0, self._state, self._maxima)

    @property
    def messages(self) -> int:
        """Messages recorded."""
        return int(self._state[0])

    def checkpoints(self) -> tuple[I64, F64]:
        """At which messages, and max − mean there; a short stream has one, its end."""
        count = int(self._state[2])
        if not count:
            at = np.array([self.messages])
            maxima = np.array([measures.normalised(self.loads, self.fair).max()])
        else:
            at = self._state[1] * np.arange(1, count + 1)
            maxima = self._maxima[:count]
        return at, maxima - at / self.loads.size


@compiled
def _record(
    loads: I64, fair: F64, rates: F64, workers: I32, start: int, state: I64, maxima: F64
) -> int:
    """Count until the checkpoints are full or the messages used up; where it stopped."""
    messages, interval, filled, since = state[0], state[1], state[2], state[3]
    due = interval - messages % interval
    i = start
    while i < workers.size and filled < maxima.size:
        stop = min(workers.size, i + due)
        due -= stop - i
        messages += stop - i
        for j in range(i, stop):
            loads[workers[j]] += 1
        i = stop
        if due == 0:
            most = 0.0
            for w in range(loads.size):
                should = fair[w] + rates[w] * (messages - since)
                most = max(most, loads[w] * (messages / should))
            maxima[filled] = most
            filled += 1
            due = interval
    state[0], state[2] = messages, filled
    return i


@dataclass(frozen=True)
class Case:
    """One system to put a stream through."""

    scheme: Scheme | str
    workers: int
    sources: int = 1
    estimate: str = "local"


def balance(
    stream: Stream | str,
    scheme: Scheme | str,
    workers: int,
    *,
    sources: int = 1,
    source_column: str | None = None,
    estimate: str = "local",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> BalanceResult:
    """Route a stream and measure how even the loads are; needs no Spark.

    A scheme that learns from a prefix routes it provisionally; that prefix counts in no figure but
    `learned`. One that learns from the whole stream reads it twice.

    progress: is called with the number of messages of each chunk
    """
    case = Case(scheme, workers, sources, estimate)
    return balance_all(stream, [case], source_column=source_column, seed=seed, progress=progress)[0]


def balance_all(
    stream: Stream | str,
    cases: Sequence[Case],
    *,
    source_column: str | None = None,
    seed: int = 0,
    replication: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[BalanceResult]:
    """Put one stream through several systems at once; without replication it is faster."""
    flow, seed = stream_of(stream), check_seed(seed)
    runs = [_Run(case, seed, replication) for case in cases]

    learners = [run for run in runs if run.scheme.learns == "stream"]
    if learners:
        for chunk in flow.chunks(seed, source_column):
            for run in learners:
                run.system.route(chunk.keys, chunk.sources)
        for run in learners:
            run.system.adopt(run.system.learned_plan())
    for chunk in flow.chunks(seed, source_column):
        for run in runs:
            run.add(chunk)
        if progress:
            progress(chunk.keys.size)
    return [run.result(flow.spec) for run in runs]


class _Run:
    """One case at work on a stream."""

    def __init__(self, case: Case, seed: int, replication: bool) -> None:
        self.scheme = scheme_of(case.scheme)
        self.system = Sources(
            self.scheme, case.workers, case.sources, seed, Estimate.parse(case.estimate)
        )
        prefix = self.scheme.learns == "prefix"
        self._to_learn = self.scheme.learning_messages if prefix else 0
        self._learned = 0
        self._recorder = LoadRecorder(self.system.workers)
        self._pairs = PairCounter(self.system.workers) if replication else None
        self._routing_s = 0.0

    def add(self, chunk: Chunk) -> None:
        if not self._routing_s:
            # Compile, or load what was compiled, before the clock starts: the router last, as
            # another process may be compiling it.
            self._recorder.warm_up()
            if self._pairs:
                self._pairs.warm_up()
            self.system.warm_up()
        start_s = time.perf_counter()
        routed = self.system.route(chunk.keys, chunk.sources)
        self._routing_s += time.perf_counter() - start_s
        skipped = min(self._to_learn - self._learned, routed.size)
        self._learned += skipped
        self._recorder.add(routed[skipped:])
        if self._pairs:
            self._pairs.add(chunk.keys[skipped:], routed[skipped:])

    def result(self, stream: str) -> BalanceResult:
        messages, loads = self._recorder.messages, self._recorder.loads
        if not messages:
            refuse_short(stream, self.scheme)
        at, excesses = self._recorder.checkpoints()
        counted = self._pairs.count() if self._pairs else Counted(0, 0)
        return BalanceResult(
            stream=stream,
            scheme=self.scheme.spec,
            workers=self.system.workers,
            sources=self.system.count,
            messages=messages,
            keys=counted.keys,
            loads=loads.tolist(),
            imbalance=measures.imbalance(loads),
            average_imbalance=measures.average_imbalance(excesses, messages),
            percent_imbalance=measures.percent_imbalance(loads),
            stddev=measures.stddev(loads),
            stddev_percent=measures.stddev_percent(loads),
            replication=measures.replication(counted.pairs, counted.keys),
            learned=self._learned,
            messages_per_second=(self._learned + messages) / self._routing_s,
            remark=self.scheme.remark(loads, self.system.count),
            checkpoint_messages=at,
            checkpoint_excesses=excesses,
        )
