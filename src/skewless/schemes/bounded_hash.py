"""Consistent hashing with bounded loads: the next worker clockwise on a ring that has room.

Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads" (SODA 2018), as the
Consistent Grouping paper compares it (CH). A worker has room while its load is below
(1 + ε) · m / W, where m counts the message at hand. Each worker has a number of points on the ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long
from skewless.schemes.api import F64, I32, I64, TRUE_LOAD, U64, Scheme, check_room, check_workers
from skewless.schemes.porc import check_epsilon


class BoundedHashPlan(NamedTuple):
    """The ring and how far above the mean a load may be."""

    workers: I64  # [1]
    seeds: U64  # [2]
    factor: F64  # [1] 1 + ε
    positions: U64  # [p] of the points, ascending
    owners: I32  # [p] their workers
    shift: U64  # [1] bits of a hash that do not choose its arc
    arcs: I64  # [a] for each of equal arcs of the ring, its first point


class LoadTally(NamedTuple):
    """What this source sent to whom."""

    loads: F64  # [W]
    total: F64  # [1] their sum


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """Clockwise from the key's place to the first point whose worker has room."""
    loads, positions, owners = tally.loads, plan.positions, plan.owners
    total = tally.total[0] + weight
    tally.total[0] = total
    limit = plan.factor[0] * total / plan.workers[0]
    h = hash_long(key, plan.seeds[0])
    point = plan.arcs[np.int64(h >> plan.shift[0])]
    while point < positions.size and positions[point] < h:
        point += 1
    worker = 0
    for _ in range(positions.size):
        if point >= positions.size:
            point = 0
        worker = int(owners[point])
        if loads[worker] < limit:
            break
        point += 1
    if loads[worker] >= limit:
        # Rounding may leave no load below the limit: the least loaded is the nearest.
        worker = loads.argmin()
    loads[worker] += weight
    return worker


@compiled
def hear(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: the load of a worker becomes the true one."""
    if kind == TRUE_LOAD:
        tally.total[0] += signal[0] - tally.loads[worker]
        tally.loads[worker] = signal[0]


@allocating
def _positions(workers: int, points: int, seed: np.uint64) -> U64:
    """Point j of a worker lies at the hash of j with the hash of the worker as seed."""
    out = np.empty(workers * points, np.uint64)
    for worker in range(workers):
        own = hash_long(np.uint64(worker), seed)
        for j in range(points):
            out[worker * points + j] = hash_long(np.uint64(j), own)
    return out


@dataclass(frozen=True)
class BoundedLoadConsistentHashing(Scheme):
    """Consistent hashing with bounded loads (CH).

    epsilon: how far above the mean a load may be.
    points: of each worker on the ring.
    """

    epsilon: float = 0.01
    points: int = 10

    name: ClassVar[str] = "bounded-hash"
    choose: ClassVar[Any] = staticmethod(choose)
    hear: ClassVar[Any] = staticmethod(hear)

    def __post_init__(self) -> None:
        check_epsilon(self.name, self.epsilon)
        if self.points < 1:
            raise SkewlessError(
                f"bounded-hash needs at least 1 point per worker on its ring, not {self.points}."
            )

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> BoundedHashPlan:
        """Lay out the ring; of points at one place the lower worker comes first."""
        check_workers(workers)
        check_room("Workers times points of bounded-hash", workers * self.points)
        seeds = choice_seeds(seed)
        places = _positions(workers, self.points, seeds[1])
        order = np.argsort(places, kind="stable")
        bits = max(1, (workers * self.points - 1).bit_length())
        starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        return BoundedHashPlan(
            np.array([workers]),
            seeds,
            np.array([1.0 + self.epsilon]),
            places[order],
            (order // self.points).astype(np.int32),
            np.array([64 - bits], np.uint64),
            np.searchsorted(places[order], starts).astype(np.int64),
        )

    def tally(self, plan: BoundedHashPlan, source: int) -> LoadTally:
        """Nothing sent."""
        return LoadTally(np.zeros(plan.workers[0]), np.zeros(1))
