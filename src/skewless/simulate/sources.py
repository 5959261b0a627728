"""The sources of a simulated system: each with its own tally, all with the same plan.

Message i goes to source i mod S, or to the source that its source key hashes to. The load that a
source goes by is its own count (`local`), one tally shared by all (`global`, the oracle), or its
own count set to its share of the true loads every T messages (`probe:T`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from skewless.arguments import whole
from skewless.compiled import allocating
from skewless.errors import SkewlessError
from skewless.hashing import check_seed, first_choice, source_seeds
from skewless.schemes import Feedback, Scheme, scheme_of
from skewless.schemes.api import I32, TRUE_LOAD, U64, check_workers

SPAN = 1 << 16  # messages routed between two calls of `reserve`
MOST_SOURCES = 10_000


def check_sources(sources: SupportsIndex) -> int:
    """The number of sources as an int; refused where there are none, or more than memory holds.

    A tally may take two megabytes.
    """
    count = whole("The number of sources", sources)
    if not 1 <= count <= MOST_SOURCES:
        bound = "at least 1" if count < 1 else f"at most {MOST_SOURCES:,}"
        raise SkewlessError(f"The number of sources must be {bound}, not {count:,}.")
    return count


def refuse_short(stream: str, scheme: Scheme) -> NoReturn:
    """Refuse a stream that ends before a scheme has learned."""
    raise SkewlessError(
        f"The stream {stream} ends within the {scheme.learning_messages} messages that "
        f"{scheme.spec} learns from: give a longer stream or learn from less."
    )


@dataclass(frozen=True)
class Estimate:
    """How a source knows the workers' loads."""

    shared: bool = False
    probe_every: int = 0

    @classmethod
    def parse(cls, text: str) -> Estimate:
        """`local`, `global` or `probe:T` with T in messages."""
        if text == "local":
            return cls()
        if text == "global":
            return cls(shared=True)
        kind, _, period = str(text).partition(":")
        if kind == "probe" and period.isdecimal() and int(period) > 0:
            return cls(probe_every=int(period))
        raise SkewlessError(
            f"The load estimate '{text}' is not known: use local, global or probe:T "
            "with T messages between probes."
        )


class Sources:
    """A scheme at work at S sources."""

    def __init__(
        self, scheme: Scheme, workers: int, sources: int, seed: int, estimate: Estimate
    ) -> None:
        self.scheme = scheme
        self.workers = check_workers(workers)
        self.count = check_sources(sources)
        self.estimate = estimate
        self.sent = 0
        self._seeds = source_seeds(seed)
        self._loads = np.zeros(self.workers)
        self._next_plan = scheme.messages_until_replan(0)
        self.adopt(scheme.plan(self.workers, check_seed(seed)))

    def adopt(self, plan: Any) -> None:
        """Go on under another plan, with fresh tallies and loads counted from here."""
        self.plan = plan
        tallies = 1 if self.estimate.shared else self.count
        self.tallies = [self.scheme.tally(plan, s) for s in range(tallies)]
        self._loads[:] = 0

    def warm_up(self) -> None:
        """Compile the scheme's router, or load what was compiled."""
        self.scheme.warm_up(self.plan)

    def learned_plan(self) -> Any:
        """What the driver plans from the reports of all sources."""
        reports = (self.scheme.report(self.plan, tally) for tally in self.tallies)
        return self.scheme.replan_from(self.plan, reports, Feedback.none(self.workers))

    def route(self, keys: U64, source_keys: U64 | None = None) -> I32:
        """The worker of each message, in order."""
        out = np.empty(keys.size, np.int32)
        start = 0
        while start < keys.size:
            stop = min(start + SPAN, keys.size, start + self._until_next_event())
            span = slice(start, stop)
            theirs = None if source_keys is None else source_keys[span]
            self._route_span(keys[span], theirs, out[span])
            start = stop
        return out

    def _until_next_event(self) -> int:
        """Messages until the next probe or the next plan."""
        waits = [SPAN]
        if self.estimate.probe_every:
            waits.append(self.estimate.probe_every - self.sent % self.estimate.probe_every)
        if self._next_plan:
            waits.append(self._next_plan - self.sent)
        return min(waits)

    def _route_span(self, keys: U64, source_keys: U64 | None, out: I32) -> None:
        times = np.arange(self.sent, self.sent + keys.size, dtype=np.float64)
        if len(self.tallies) == 1:
            self._route_source(0, keys, times, out)
        elif source_keys is None:
            for s in range(self.count):
                first = (s - self.sent) % self.count
                theirs = slice(first, None, self.count)
                routed = np.empty(len(keys[theirs]), np.int32)
                self._route_source(s, np.ascontiguousarray(keys[theirs]), times[theirs], routed)
                out[theirs] = routed
        else:
            for s, where in enumerate(_positions(source_keys, self._seeds, self.count)):
                routed = np.empty(where.size, np.int32)
                self._route_source(s, keys[where], times[where], routed)
                out[where] = routed
        self.sent += keys.size
        if self.estimate.probe_every:
            self._loads += np.bincount(out, minlength=self.workers)
            if self.sent % self.estimate.probe_every == 0:
                self._probe()
        if self.sent == self._next_plan:
            self.adopt(self.learned_plan())
            every = self.scheme.messages_until_replan(1)
            self._next_plan = self.sent + every if every else 0

    def _route_source(self, source: int, keys: U64, times: npt.NDArray[Any], out: I32) -> None:
        tally = self.scheme.reserve(self.tallies[source], keys.size)
        self.tallies[source] = tally
        self.scheme.send(self.plan, tally, keys, np.ascontiguousarray(times), out)

    def _probe(self) -> None:
        for tally in self.tallies:
            for worker in range(self.workers):
                signal = self._loads[worker : worker + 1] / len(self.tallies)
                self.scheme.hear(self.plan, tally, worker, TRUE_LOAD, signal, float(self.sent))


@allocating
def _sources_of(source_keys: U64, seeds: U64, count: int) -> npt.NDArray[np.int64]:
    out = np.empty(source_keys.size, np.int64)
    for i in range(source_keys.size):
        out[i] = first_choice(source_keys[i], seeds, count)
    return out


def _positions(source_keys: U64, seeds: U64, count: int) -> list[npt.NDArray[np.int64]]:
    """For each source, the positions of its messages in order."""
    owners = _sources_of(source_keys, seeds, count)
    order = np.argsort(owners, kind="stable")
    return np.split(order, np.searchsorted(owners[order], np.arange(1, count)))


def _as_identities(keys: Any) -> U64:
    if isinstance(keys, np.ndarray) and keys.dtype == np.uint64:
        return np.ascontiguousarray(keys)
    from skewless.hashing import identities

    return identities(keys)


def route(keys: Any, scheme: Scheme | str, workers: int, *, sources: int = 1, seed: int = 0) -> I32:
    """The worker of every message; message i comes from source i mod `sources`.

    keys: values (NumPy, Arrow or a list), which go where Spark sends them; or identities, an array
        of uint64, such as `skewless.identities` makes from several columns

    A scheme that learns from the whole stream gets a first pass over `keys`; one that learns from
    a prefix routes that prefix provisionally, then the rest as learned.
    """
    made = scheme_of(scheme)
    array = _as_identities(keys)
    system = Sources(made, workers, sources, seed, Estimate())
    if made.learns == "stream":
        system.route(array)
        system.adopt(system.learned_plan())
    return system.route(array)
