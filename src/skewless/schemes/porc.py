"""Power of Random Choices: the first of a key's endless candidates that still has room.

Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters" (Consistent Grouping),
section IV.A. A worker has room while its load is below (1 + ε) · m / W, where m counts the message
at hand; so no load ever reaches (1 + ε) · m / W + 1. A key stays with its first candidate (key
grouping's worker) until that one is full, and only hot keys spread.

Candidate 1 is the worker of h = H(key); candidate i > 1 that of the hash of i with the seed h: a
hash of the pair, and one hash for each.

A hot key would scan past the same full candidates again and again. Loads only grow, so candidates
that were full stay full until the limit passes the least of their loads: each source remembers, for
the keys that scanned last, how far the scan came and that least load, and goes on from there. With
loads that are whole numbers all full workers share one load, so a scan begins again once in
W / (1 + ε) messages. The result is the same as scanning from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, scale
from skewless.schemes.api import F64, I64, TRUE_LOAD, U64, Scheme, check_workers

_REMEMBERED = 1024  # scans, a power of two
_PATIENCE = 64  # candidates per worker after which a scan gives up: chance e^-64 on one free worker


class PorcPlan(NamedTuple):
    """The hash seeds and how far above the mean a load may be."""

    workers: I64  # [1]
    seeds: U64  # [2]
    factor: F64  # [1] 1 + ε


class Scans(NamedTuple):
    """Where the scans of recent keys stand; a key's place is given by its hash."""

    hashes: U64  # [n] of the key that has this place
    numbers: I64  # [n] the candidate it took last: all before it were full
    floors: F64  # [n] the least load seen among those


class PorcTally(NamedTuple):
    """What this source sent to whom."""

    loads: F64  # [W]
    total: F64  # [1] their sum
    scans: Scans


def new_scans() -> Scans:
    """No scan is remembered."""
    return Scans(
        np.zeros(_REMEMBERED, np.uint64),
        np.zeros(_REMEMBERED, np.int64),
        np.full(_REMEMBERED, -np.inf),
    )


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The first candidate with room."""
    loads = tally.loads
    workers = np.uint64(plan.workers[0])
    total = tally.total[0] + weight
    tally.total[0] = total
    limit = plan.factor[0] * total / plan.workers[0]
    h = hash_long(key, plan.seeds[0])
    worker = scale(h, workers)
    load = loads[worker]
    if load >= limit:
        hashes, numbers, floors = tally.scans
        place = np.int64(h & np.uint64(_REMEMBERED - 1))
        number, floor = np.int64(2), load
        if hashes[place] == h and limit <= floors[place]:
            number, floor = numbers[place], floors[place]
        hashes[place] = h
        last = number + _PATIENCE * plan.workers[0]
        worker = scale(hash_long(np.uint64(number), h), workers)
        load = loads[worker]
        while load >= limit:
            floor = min(floor, load)
            number += 1
            if number > last:
                # Rounding may leave no load below the limit: the least loaded is the nearest.
                worker = np.int64(0)
                for other in range(1, loads.size):
                    worker = other if loads[other] < loads[worker] else worker
                load = loads[worker]
                break
            worker = scale(hash_long(np.uint64(number), h), workers)
            load = loads[worker]
        numbers[place] = number
        floors[place] = floor
    loads[worker] = load + weight
    return worker


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: the load of a worker becomes the true one; it may fall, so scans begin again."""
    if kind == TRUE_LOAD:
        tally.total[0] += signal[0] - tally.loads[worker]
        tally.loads[worker] = signal[0]
        tally.scans.floors[:] = -np.inf


@dataclass(frozen=True)
class PowerOfRandomChoices(Scheme):
    """PoRC.

    epsilon: how far above the mean a load may be; less is more even, more splits fewer keys.
    """

    epsilon: float = 0.01

    name: ClassVar[str] = "porc"
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        check_epsilon(self.name, self.epsilon)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> PorcPlan:
        """The seeds and the limit."""
        check_workers(workers)
        return PorcPlan(np.array([workers]), choice_seeds(seed), np.array([1.0 + self.epsilon]))

    def tally(self, plan: PorcPlan, source: int) -> PorcTally:
        """Nothing sent."""
        return PorcTally(np.zeros(plan.workers[0]), np.zeros(1), new_scans())


def check_epsilon(name: str, epsilon: float) -> None:
    """Refuse a slack that is negative or no number."""
    if not 0 <= epsilon < np.inf:
        raise SkewlessError(
            f"{name}:epsilon is the room above the mean load: a number of at least 0, "
            f"not {epsilon}."
        )
