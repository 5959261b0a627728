"""The system that a stream is put through: workers, costs, arrivals and the way of signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skewless.errors import SkewlessError
from skewless.schemes.api import F64, check_workers
from skewless.simulate.queue.costs import Costs, check_positive
from skewless.simulate.sources import check_sources

Arrivals = Literal["even", "poisson"]
Change = tuple[int, Sequence[float]]


@dataclass(frozen=True)
class Cluster:
    """Workers, their capacities, what messages cost and how they and the signals come.

    capacities: cost a worker works off per unit of time; 1 each by default.
    changes: (message, capacities from then on), in order. More capacities than before add workers
    with the next numbers; fewer remove those with the highest numbers, which finish what they have.
    Sources then start with a first plan for the new number.
    delay: time from a message's finish until its source hears the worker's signal.
    merge_every, merge_cost: every so often each worker spends so much cost on each key it got since
    the last time; the work queues up behind what came before.
    """

    workers: int
    load: float
    sources: int = 1
    capacities: Sequence[float] | None = None
    changes: Sequence[Change] = ()
    costs: Costs | str = "constant"
    arrivals: Arrivals = "even"
    delay: float = 0.0
    merge_every: float = 0.0
    merge_cost: float = 0.0

    def __post_init__(self) -> None:
        check_workers(self.workers)
        check_sources(self.sources)
        check_positive("The offered load", self.load)
        if self.capacities is not None:
            self._check_capacities(self.capacities)
            if len(self.capacities) != self.workers:
                raise SkewlessError(
                    f"There are {len(self.capacities)} capacities for {self.workers} workers: "
                    "give one for each."
                )
        last = 0
        for message, capacities in self.changes:
            if message <= last:
                raise SkewlessError(
                    "Capacities change at messages that follow each other, the first after 0: "
                    f"{message} does not come after {last}."
                )
            last = message
            self._check_capacities(capacities)
        if self.arrivals not in ("even", "poisson"):
            raise SkewlessError(f"Arrivals are even or poisson, not '{self.arrivals}'.")
        for name in ("delay", "merge_every", "merge_cost"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise SkewlessError(f"The {name} must be a time of at least 0, not {value}.")

    def _check_capacities(self, capacities: Sequence[float]) -> None:
        check_workers(len(capacities))
        for capacity in capacities:
            check_positive("A capacity", capacity)

    def check_length(self, messages: int | None) -> None:
        """Refuse changes that a stream of so many messages, if it is known, never reaches."""
        for message, _ in self.changes:
            if messages is not None and message >= messages:
                raise SkewlessError(
                    f"Capacities change at message {message:,}, but the stream has only "
                    f"{messages:,}: let them change earlier, or give a longer stream."
                )

    @property
    def most_workers(self) -> int:
        """That are there at one time."""
        return max(self.workers, *(len(c) for _, c in self.changes), 0)

    @property
    def resizes(self) -> list[tuple[int, int]]:
        """The changes of the number of workers: (message, workers from then on)."""
        found, workers = [], self.workers
        for message, capacities in self.changes:
            if len(capacities) != workers:
                workers = len(capacities)
                found.append((message, workers))
        return found

    def starting_capacities(self) -> F64:
        """One for each worker."""
        given = np.ones(self.workers) if self.capacities is None else self.capacities
        return np.asarray(given, np.float64)

    def stages(self) -> F64:
        """The capacities at the start and after each change, of all workers that ever are there.

        One that left has what it had, for what it still has to do; one that is yet to come has
        what it will have, for the message with which it comes may arrive a little earlier.
        """
        given = [self.starting_capacities(), *(np.asarray(c) for _, c in self.changes)]
        first = np.ones(self.most_workers)
        for capacities in reversed(given):
            first[: capacities.size] = capacities
        stages = [first]
        for capacities in given:
            stages.append(np.concatenate([capacities, stages[-1][capacities.size :]]))
        return np.array(stages[1:], np.float64)
