"""What the schemes share that remember the worker of every key: a table beside the loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, Scheme, hear_true_load
from skewless.sketch.key_table import KeyTable, key_table, reserve


class RememberingTally(NamedTuple):
    """What this source sent to whom, and the worker of every key it saw."""

    loads: F64  # [W]
    table: KeyTable  # key -> worker


@inlined
def remember(table: Any, slot: np.int64, key: np.uint64, worker: np.int64) -> None:
    """The key's worker from now on, in the free slot where the key belongs."""
    table.keys[slot] = key
    table.values[slot] = worker
    table.used[0] += 1


@dataclass(frozen=True)
class RememberingScheme(Scheme):
    """Base of those that choose once per key and keep to it."""

    coordinated: ClassVar[bool] = True
    hear: ClassVar[Any] = staticmethod(hear_true_load)

    def tally(self, plan: Any, source: int) -> RememberingTally:
        """No loads, no keys."""
        return RememberingTally(np.zeros(plan.workers[0]), key_table())

    def reserve(self, tally: RememberingTally, messages: int) -> RememberingTally:
        """Every message may bring a new key."""
        return tally._replace(table=reserve(tally.table, messages))
