"""The scheme that spreads messages over the virtual workers: porc, key, shuffle or partial.

Which one is part of the plan, so that all of them are one compiled function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.hashing import first_choice
from skewless.schemes import partial, porc, shuffle
from skewless.schemes.api import F64, I64, U64
from skewless.schemes.porc import Scans

INNER = ("porc", "key", "shuffle", "partial")
_PORC, _KEY, _SHUFFLE = 0, 1, 2


class InnerPlan(NamedTuple):
    """What any of the inner schemes reads of its plan, over the virtual workers."""

    kind: I64  # [1] place in the list of inner schemes
    workers: I64  # [1] number of virtual workers
    seeds: U64  # [2]
    factor: F64  # [1] porc: 1 + ε
    choices: I64  # [1] partial
    prime: I64  # [1] partial: least prime ≥ their number


class InnerTally(NamedTuple):
    """What any of the inner schemes keeps."""

    loads: F64  # [V] sent to each virtual worker
    total: F64  # [1] porc
    scans: Scans  # porc
    turn: I64  # [1] shuffle


@inlined
def choose_virtual(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The virtual worker of a message."""
    kind = plan.kind[0]
    if kind == _PORC:
        virtual = porc.choose(plan, tally, key, weight, now)
    elif kind == _KEY:
        virtual = first_choice(key, plan.seeds, plan.workers[0])
        tally.loads[virtual] += weight
    elif kind == _SHUFFLE:
        virtual = shuffle.choose(plan, tally, key, weight, now)
        tally.loads[virtual] += weight
    else:
        virtual = partial.choose(plan, tally, key, weight, now)
    return virtual
