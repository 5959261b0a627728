"""Partial Key Grouping: a key has d distinct choices, the least loaded of them takes the message.

Nasir, De Francisci Morales, García-Soriano, Kourtellis, Serafini: "The Power of Both Choices"
(ICDE 2015) and "Partial Key Grouping". Nothing is remembered per key (key splitting), and the load
is this source's own count of what it sent (local load estimation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.hashing import (
    choice_seeds,
    first_choice,
    least_prime,
    next_choice,
    second_choice,
    stride,
)
from skewless.schemes.api import (
    F64,
    I64,
    U64,
    Feedback,
    Scheme,
    check_workers,
    hear_true_load,
)
from skewless.schemes.parts.sharing import shared_out


class PartialPlan(NamedTuple):
    """The hash seeds, the number of choices, and the loads a source starts from."""

    workers: I64  # [1]
    choices: I64  # [1]
    prime: I64  # [1] least prime ≥ workers
    seeds: U64  # [2]
    start: F64  # [W] a source's share of what earlier batches left uneven
    sources: F64 = np.zeros(1)  # [1] that `start` was divided by; 0 = nothing was reported yet


class PartialTally(NamedTuple):
    """What this source sent to whom."""

    loads: F64  # [W]


class PartialReport(NamedTuple):
    """What the sources sent, beyond the loads they started from."""

    loads: F64  # [W]
    sources: I64  # [1]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The least loaded choice; of equals, the first."""
    loads = tally.loads
    workers = plan.workers[0]
    worker = first_choice(key, plan.seeds, workers)
    # The least load is carried along: loading it again from loads[worker] would chain each message
    # to the store of the one before, and halve the speed.
    least = loads[worker]
    count = plan.choices[0]
    if count > 1:
        choice = second_choice(key, plan.seeds, workers, worker)
        step = stride(worker, choice, plan.prime[0])
        load = loads[choice]
        worker = choice if load < least else worker
        least = min(load, least)
        if count > 2:
            for _ in range(2, count):
                choice = next_choice(choice, step, workers, plan.prime[0])
                load = loads[choice]
                worker = choice if load < least else worker
                least = min(load, least)
    loads[worker] = least + weight
    return worker


@dataclass(frozen=True)
class PartialKeyGrouping(Scheme):
    """Partial Key Grouping (PKG).

    choices: distinct workers per key; 2 is the paper's, 1 is key grouping, W behaves like shuffle.
    """

    choices: int = 2

    name: ClassVar[str] = "partial"
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def __post_init__(self) -> None:
        if self.choices < 1:
            raise SkewlessError(f"partial needs at least 1 choice per key, not {self.choices}.")

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PartialPlan:
        """Seeds and choices; one worker leaves one choice."""
        check_workers(workers)
        if self.choices > max(workers, 2):
            raise SkewlessError(
                f"partial:choices={self.choices} needs at least {self.choices} workers, "
                f"not {workers}: choices are distinct workers."
            )
        return PartialPlan(
            np.array([workers]),
            np.array([min(self.choices, workers)]),
            np.array([least_prime(workers)]),
            choice_seeds(seed),
            np.zeros(workers),
        )

    def tally(self, plan: PartialPlan, source: int) -> PartialTally:
        """Start from the plan's loads."""
        return PartialTally(plan.start.copy())

    def report(self, plan: PartialPlan, tally: PartialTally) -> PartialReport:
        """What was sent under this plan; a source that sent nothing does not count."""
        sent = tally.loads - plan.start
        return PartialReport(sent, np.array([int(sent.any())]))

    def merge(self, a: PartialReport, b: PartialReport) -> PartialReport:
        """Loads and sources add up."""
        return PartialReport(a.loads + b.loads, a.sources + b.sources)

    def replan(self, plan: PartialPlan, report: PartialReport, feedback: Feedback) -> PartialPlan:
        """Carry what is still uneven into the next batch, each source its share of it.

        Every source starting from the whole unevenness would mend it several times over.
        """
        return shared_out(plan, report)

    def most_workers_per_key(self, workers: int) -> int:
        """The number of choices."""
        return min(self.choices, workers)
