"""A worker of Consistent Grouping: watches how busy it is, and asks for less or for more.

- **Utilisation** is the time spent serving in a slot ÷ the length of the slot. Without a backlog
  that is the paper's messages assigned ÷ (capacity · slot); with one it is 1 until all is done.
- **Signals ride on acknowledgements.** Once per slot a source marks a message to each worker; its
  acknowledgement says what the worker found in its last whole slot: less, more or enough. So each
  source hears for itself, late, and of each slot at most once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import F64, I64, NO_SIGNAL

LESS, MORE, ENOUGH = 2, 3, 4


class ConsistentGauge(NamedTuple):
    """What the workers see of themselves."""

    busy: F64  # [W] time spent serving in this slot
    since: F64  # [W] when it began, and the one before it ended
    utilisation: F64  # [W] in the last whole slot
    slots: F64  # [W] whole slots
    verdicts: I64  # [W] LESS, MORE or ENOUGH for the last whole slot


@inlined
def serve(
    plan: Any,
    gauge: Any,
    worker: int,
    key: np.uint64,
    cost: float,
    now: float,
    marked: bool,
    note: F64,
    signal: F64,
) -> int:
    """Watch the time spent serving; answer a marked message once a slot is whole."""
    busy = gauge.busy[worker] + cost
    elapsed = now - gauge.since[worker]
    if elapsed >= plan.slot[0]:
        utilisation = busy / elapsed
        verdict = LESS if utilisation > plan.band[1] else ENOUGH
        gauge.verdicts[worker] = MORE if utilisation < plan.band[0] else verdict
        gauge.utilisation[worker] = utilisation
        gauge.slots[worker] += 1
        gauge.since[worker] = now
        busy = 0.0
    gauge.busy[worker] = busy
    if not marked or gauge.slots[worker] == 0:
        return NO_SIGNAL
    signal[0] = gauge.slots[worker]
    signal[1] = gauge.since[worker]
    signal[2] = gauge.utilisation[worker]
    return gauge.verdicts[worker]
