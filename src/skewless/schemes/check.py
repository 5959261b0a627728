"""Does a scheme keep the laws that its hosts rely on? For schemes of one's own, and in the tests.

Which laws apply is asked of the scheme: one with a table gets the law of tables, one whose workers
send signals hears its own, late.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from skewless.arguments import whole
from skewless.errors import SkewlessError
from skewless.hashing import check_seed, choice_seeds, first_choice
from skewless.schemes.api import (
    F64,
    I32,
    NO_SIGNAL,
    TRUE_LOAD,
    U64,
    Arrays,
    Feedback,
    Scheme,
    check_workers,
    hear_nothing,
    serve_silently,
)

_SOURCES = 3
_LAG = 20  # messages between a signal and the source's ear


def check_scheme(
    scheme: Scheme,
    *,
    workers: int = 7,
    messages: int = 600,
    seed: int = 0,
    same_reports: Callable[[Any, Any], bool] | None = None,
) -> None:
    """Raise SkewlessError naming the law that the scheme breaks, if it breaks one.

    scheme: with parameters so small that `messages` leave its beginning behind
    workers, messages, seed: of the skewed stream that is routed
    same_reports: when two merged reports count as equal; else all of their arrays must be
    """
    if not isinstance(scheme, Scheme):
        raise SkewlessError(
            f"check_scheme takes a scheme, such as an object of your own class, not {scheme!r}."
        )
    messages = whole("The number of messages", messages)
    if messages < 1:
        raise SkewlessError(f"check_scheme needs at least 1 message, not {messages}.")
    workers, seed = check_workers(workers), check_seed(seed)
    bench = _Bench(scheme, max(workers, scheme.least_workers), skewed(messages, seed), seed)
    for law in _LAWS:
        law(bench)
    _reports_merge(bench, same_reports or same_state)


def skewed(messages: int, seed: int) -> U64:
    """Identities of which one has a third of the messages and the rest a long tail."""
    random = np.random.default_rng(seed)
    keys = random.zipf(1.3, messages) % 200 + 1
    return np.where(random.random(messages) < 1 / 3, 0, keys).astype(np.uint64)


def arrays_of(state: Any) -> Iterator[Any]:
    """All arrays of nested NamedTuples, in order."""
    for part in state:
        if isinstance(part, tuple):
            yield from arrays_of(part)
        else:
            yield part


def same_state(a: Any, b: Any) -> bool:
    """Are all arrays equal?"""
    these, those = list(arrays_of(a)), list(arrays_of(b))
    return len(these) == len(those) and all(map(np.array_equal, these, those))


def send(scheme: Scheme, plan: Any, tally: Any, keys: U64, start: int = 0) -> tuple[I32, Any]:
    """The workers of messages at one source, and its tally."""
    tally = scheme.reserve(tally, keys.size)
    out = np.full(keys.size, -1, np.int32)
    times = np.arange(start, start + keys.size, dtype=np.float64)
    scheme.send(plan, tally, np.ascontiguousarray(keys), times, out)
    return out, tally


class Walk(NamedTuple):
    """What became of a stream whose source hears late signals."""

    workers: I32
    kinds: set[int]  # of the signals heard
    tally: Any


def walk(scheme: Scheme, plan: Any, keys: U64, workers: int, lag: int = _LAG) -> Walk:
    """Route message by message; signals arrive `lag` messages after what they tell of.

    Where workers send signals of their own these are heard, else each worker's true load.
    """
    tally, gauge = scheme.tally(plan, 0), scheme.gauge(plan)
    silent = scheme.serve is serve_silently
    note, signal = np.zeros(scheme.note_floats), np.zeros(scheme.signal_floats)
    loads, out, kinds = np.zeros(workers), np.empty(keys.size, np.int32), set()
    wire: deque[tuple[int, int, F64]] = deque()
    for i in range(keys.size):
        routed, tally = send(scheme, plan, tally, keys[i : i + 1], i)
        worker = out[i] = int(routed[0])
        if not 0 <= worker < workers:
            break
        loads[worker] += 1
        kind, now = TRUE_LOAD, float(i)
        if silent:
            signal[0] = loads[worker]
        else:
            marked = bool(scheme.mark(plan, tally, worker, note))
            # Every third worker is slow: some are then too busy, and others idle.
            cost = float(1 + keys[i] % 5) * (1 if worker % 3 else 4)
            kind = scheme.serve(plan, gauge, worker, keys[i], cost, now, marked, note, signal)
        wire.append((worker, int(kind), signal.copy()))
        if len(wire) > lag:
            teller, kind, told = wire.popleft()
            if kind != NO_SIGNAL:
                kinds.add(kind)
                scheme.hear(plan, tally, teller, kind, told, now)
    return Walk(out, kinds, tally)


class _Bench:
    """A scheme, a stream, and the plans under which it is routed."""

    def __init__(self, scheme: Scheme, workers: int, keys: U64, seed: int) -> None:
        self.scheme, self.workers, self.keys = scheme, workers, keys
        first = scheme.plan(workers, seed)
        self.reports = self.reported(first)
        following = scheme.replan_from(first, self.reports, Feedback.none(workers))
        self.plans = {"the first plan": first, "the plan that follows": following}

    def reported(self, plan: Any) -> list[Arrays]:
        reports = []
        for source in range(_SOURCES):
            _, tally = self.send(plan, self.keys[source::_SOURCES], source)
            reports.append(self.scheme.report(plan, tally))
        return reports

    def send(self, plan: Any, keys: U64, source: int = 0) -> tuple[I32, Any]:
        return send(self.scheme, plan, self.scheme.tally(plan, source), keys)

    def insist(self, kept: bool, law: str) -> None:
        if not kept:
            raise SkewlessError(f"Scheme '{self.scheme.spec}' breaks a law: {law}.")


def _workers_exist(bench: _Bench) -> None:
    for name, plan in bench.plans.items():
        out, _ = bench.send(plan, bench.keys)
        inside = out.size == 0 or (out.min() >= 0 and out.max() < bench.workers)
        last = bench.workers - 1
        bench.insist(bool(inside), f"under {name} a worker must be a number from 0 to {last}")


def _pieces_are_the_whole(bench: _Bench) -> None:
    for name, plan in bench.plans.items():
        whole, _ = bench.send(plan, bench.keys)
        for cut in (1, bench.keys.size // 3, bench.keys.size - 1):
            first, tally = bench.send(plan, bench.keys[:cut])
            # A tally must also survive the way to another process.
            moved = pickle.loads(pickle.dumps(tally))
            second, _ = send(bench.scheme, plan, moved, bench.keys[cut:], cut)
            bench.insist(
                np.array_equal(whole, np.concatenate([first, second])),
                f"under {name} a stream routed in two pieces must go where it goes in one; all "
                "that `choose` remembers belongs in the tally",
            )


def _plans_stay_as_they_are(bench: _Bench) -> None:
    for name, plan in bench.plans.items():
        before = pickle.loads(pickle.dumps(plan))
        walk(bench.scheme, plan, bench.keys, bench.workers)
        bench.send(plan, bench.keys)
        bench.insist(same_state(plan, before), f"{name} must not be written to while it is used")


def _keys_keep_to_their_bound(bench: _Bench) -> None:
    scheme = bench.scheme
    bound = 1 if scheme.one_worker_per_key else scheme.most_workers_per_key(bench.workers)
    for name, plan in bench.plans.items():
        homes: dict[int, set[int]] = {}
        for source in range(_SOURCES):
            keys = bench.keys[source::_SOURCES]
            out, _ = bench.send(plan, keys, source)
            for key, worker in zip(keys.tolist(), out.tolist(), strict=True):
                homes.setdefault(key, set()).add(worker)
        most = max(map(len, homes.values()), default=0)
        bench.insist(
            most <= bound,
            f"under {name} a key has {most} workers, and at most {bound} are promised",
        )


def _learning_changes_the_plan(bench: _Bench) -> None:
    if bench.scheme.learns != "nothing":
        first, following = bench.plans.values()
        changed = not same_state(first, following)
        bench.insist(changed, "a scheme that learns must plan otherwise after what it saw")


def _tables_route_as_choose_does(bench: _Bench) -> None:
    for name, plan in bench.plans.items():
        table = bench.scheme.table(plan)
        if table is None:
            continue
        out, _ = bench.send(plan, bench.keys)
        seeds = choice_seeds(table.seed)
        heads = {int(key): row for row, key in enumerate(table.heads)}
        for key, worker in zip(bench.keys, out.tolist(), strict=True):
            row = heads.get(int(key))
            if row is None:
                bucket = first_choice(key, seeds, table.buckets.size)
                own = table.buckets[bucket : bucket + 1]
            else:
                own = table.head_workers[table.head_starts[row] : table.head_starts[row + 1]]
            bench.insist(worker in own, f"`table` of {name} must send keys where `choose` does")


def _late_signals_are_heard(bench: _Bench) -> None:
    scheme = bench.scheme
    if scheme.hear is hear_nothing and scheme.serve is serve_silently:
        return
    for name, plan in bench.plans.items():
        heard = walk(scheme, plan, bench.keys, bench.workers)
        inside = heard.workers.min() >= 0 and heard.workers.max() < bench.workers
        bench.insist(
            bool(inside), f"under {name} late signals must not lead to workers that are not"
        )
        again = walk(scheme, plan, bench.keys, bench.workers)
        same = np.array_equal(heard.workers, again.workers)
        bench.insist(same, f"under {name} equal signals must lead to equal routes")
        deaf = walk(scheme, plan, bench.keys, bench.workers, lag=bench.keys.size)
        bench.insist(
            not heard.kinds or not same_state(heard.tally, deaf.tally),
            f"under {name} signals that are heard must leave something in the tally",
        )


def _reports_merge(bench: _Bench, same: Callable[[Any, Any], bool]) -> None:
    merge = bench.scheme.merge
    a, b, c = bench.reports
    first = bench.plans["the first plan"]
    idle = bench.scheme.report(first, bench.scheme.tally(first, _SOURCES))
    bench.insist(same(merge(a, b), merge(b, a)), "merge(a, b) must equal merge(b, a)")
    bench.insist(
        same(merge(merge(a, b), c), merge(a, merge(b, c))),
        "merge(merge(a, b), c) must equal merge(a, merge(b, c))",
    )
    bench.insist(same(merge(a, idle), a), "the report of an idle source must change nothing")


_LAWS: tuple[Callable[[_Bench], None], ...] = (
    _workers_exist,
    _plans_stay_as_they_are,
    _pieces_are_the_whole,
    _keys_keep_to_their_bound,
    _learning_changes_the_plan,
    _tables_route_as_choose_does,
    _late_signals_are_heard,
)
