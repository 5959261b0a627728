"""Off-line greedy: keys by falling true frequency, each to the least loaded worker.

The bound that an on-line scheme is measured against: it needs a first pass over the whole stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.hashing import choice_seeds, first_choice
from skewless.schemes.api import F64, I64, U64, Feedback, Scheme, check_workers
from skewless.schemes.parts.packing import pack
from skewless.sketch.key_table import (
    EMPTY,
    KeyTable,
    entries,
    key_table,
    reserve,
    slot_of,
    table_of,
)


class OffGreedyPlan(NamedTuple):
    """The worker of every key, once learned."""

    workers: I64  # [1]
    seeds: U64  # [2]
    learned: I64  # [1] 0 while counting keys
    table: KeyTable  # key -> worker


class OffGreedyTally(NamedTuple):
    """How often each key came; used while learning only."""

    table: KeyTable  # key -> count


class KeyCounts(NamedTuple):
    """Exact counts, ordered by key."""

    keys: U64  # [n]
    counts: I64  # [n]


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The planned worker; while learning, count the key and take its hash."""
    if plan.learned[0]:
        slot = slot_of(plan.table.keys, plan.table.values, key)
        if plan.table.values[slot] != EMPTY:
            return plan.table.values[slot]
    else:
        table = tally.table
        slot = slot_of(table.keys, table.values, key)
        if table.values[slot] == EMPTY:
            table.keys[slot] = key
            table.values[slot] = 0
            table.used[0] += 1
        table.values[slot] += 1
    return first_choice(key, plan.seeds, plan.workers[0])


@dataclass(frozen=True)
class OfflineGreedy(Scheme):
    """Off-greedy of the partial key grouping paper: knows every key's frequency beforehand."""

    name: ClassVar[str] = "off-greedy"
    learns: ClassVar[Any] = "stream"
    coordinated: ClassVar[bool] = True
    one_worker_per_key: ClassVar[bool] = True
    choose: ClassVar[Any] = staticmethod(choose)

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> OffGreedyPlan:
        """Count first."""
        check_workers(workers)
        return OffGreedyPlan(
            np.array([workers]), choice_seeds(seed), np.zeros(1, np.int64), key_table()
        )

    def tally(self, plan: OffGreedyPlan, source: int) -> OffGreedyTally:
        """No counts."""
        return OffGreedyTally(key_table())

    def reserve(self, tally: OffGreedyTally, messages: int) -> OffGreedyTally:
        """Every message may bring a new key."""
        return tally._replace(table=reserve(tally.table, messages))

    def report(self, plan: OffGreedyPlan, tally: OffGreedyTally) -> KeyCounts:
        """The counts."""
        return KeyCounts(*entries(tally.table))

    def merge(self, a: KeyCounts, b: KeyCounts) -> KeyCounts:
        """Counts add up."""
        keys, where = np.unique(np.concatenate([a.keys, b.keys]), return_inverse=True)
        counts = np.zeros(keys.size, np.int64)
        np.add.at(counts, where, np.concatenate([a.counts, b.counts]))
        return KeyCounts(keys, counts)

    def replan(self, plan: OffGreedyPlan, report: KeyCounts, feedback: Feedback) -> OffGreedyPlan:
        """Pack the keys: most frequent first, ties by identity."""
        order = np.argsort(-report.counts, kind="stable")
        workers = pack(self.load_of(report.counts[order]), int(plan.workers[0]))
        table = table_of(report.keys[order], workers)
        return plan._replace(learned=np.ones(1, np.int64), table=table)

    def load_of(self, counts: Any) -> Any:
        """The load that keys of these counts bring."""
        return counts

    def most_workers_per_key(self, workers: int) -> int:
        """One."""
        return 1
