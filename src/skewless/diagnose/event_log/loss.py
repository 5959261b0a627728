"""The time that a stage lost, and to what.

    even = max(Σ task time ÷ cores, the median task)        lost = took − even

`took` is from the launch of its first task to the end of its last. The cores are those that the
stage could use: where it has at least as many tasks as there are cores, the most tasks that were
seen at once, for other stages may hold the rest. A stage is never faster than a typical task, so a
stage with fewer tasks than cores does not lose what more tasks would win: that is another cause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Cause = Literal[
    "skew of records",
    "costly key",
    "slow machine",
    "too few tasks",
    "task retries",
    "late starts",
    "none",
]
LEAST_SHARE = 0.1  # of the time a stage took: less than that lost is no matter
LEAST_S = 0.1
SKEWED = 1.5  # times as long as the typical task: then it is not just noise
SLOWER = 1.5  # times as long per record as others: then records do not explain a task's time


@dataclass(frozen=True, slots=True)
class Loss:
    """What a stage took, what it would have taken with even work, and why."""

    took_s: float
    even_s: float
    cause: Cause
    cores: int

    @property
    def lost_s(self) -> float:
        """Never negative: clocks of executors differ a little."""
        return max(0.0, self.took_s - self.even_s)


def loss_of(
    seconds: F64,
    records: F64,
    executors: npt.NDArray[np.int32],
    took_s: float,
    cores: int,
    retried: int = 0,
) -> Loss:
    """The loss of a stage from its successful tasks.

    seconds, records, executors: of each task how long, how many, and on which executor
    retried: attempts that failed or were killed
    """
    total = float(seconds.sum())
    even_s = max(total / cores, _typical(seconds))
    cause = _cause(seconds, records, executors, took_s, even_s, cores, retried)
    return Loss(took_s, min(even_s, took_s), cause, cores)


def _typical(seconds: F64) -> float:
    """The lower median: of two tasks the shorter, for the longer may be the skewed one."""
    return float(np.sort(seconds)[(seconds.size - 1) // 2])


def _cause(
    seconds: F64,
    records: F64,
    executors: npt.NDArray[np.int32],
    took_s: float,
    even_s: float,
    cores: int,
    retried: int,
) -> Cause:
    lost_s = took_s - even_s
    mean_s = float(seconds.mean())
    waves = math.ceil(seconds.size / cores)
    few = seconds.size < 2 * cores and waves * mean_s * cores > (1 + LEAST_SHARE) * seconds.sum()
    typical_s = _typical(seconds)
    # Long tasks may follow one another on a core, so what they take too long counts together.
    excess_s = float((seconds - typical_s)[seconds > SKEWED * typical_s].sum())
    skewed = excess_s > lost_s / 2
    if lost_s <= max(LEAST_S, LEAST_SHARE * took_s):
        idle = seconds.size < cores and mean_s > LEAST_S and not skewed
        return "too few tasks" if idle else "none"
    if not skewed:
        if retried:
            return "task retries"
        return "too few tasks" if few else "late starts"
    machine = _slow_machine(seconds, records, executors)
    if _records_explain(seconds, records):
        return "skew of records"
    return "slow machine" if machine else "costly key"


def _records_explain(seconds: F64, records: F64) -> bool:
    """Has the longest task as many more records as it has more time?

    Time per record is compared with that of all other tasks together, where those without a record
    count for the time that a task takes anyway.
    """
    longest = int(seconds.argmax())
    others = np.delete(np.arange(seconds.size), longest)
    idle = seconds[records == 0]
    start_s = float(np.median(idle)) if idle.size else 0.0
    work_s = np.maximum(seconds - start_s, 0.0)
    other_records, other_s = float(records[others].sum()), float(work_s[others].sum())
    if not records[longest]:
        return False
    if not other_records or not other_s:
        return True
    per_record = work_s[longest] / records[longest]
    return bool(
        per_record <= SLOWER * other_s / other_records
        and records[longest] > SLOWER * records.mean()
    )


def _slow_machine(seconds: F64, records: F64, executors: npt.NDArray[np.int32]) -> bool:
    """Are all tasks of one executor slow for what they read, and those of the others not?"""
    numbers = np.unique(executors)
    if numbers.size < 2:
        return False
    slow = executors[int(seconds.argmax())]
    rates = seconds / np.maximum(records, 1.0) if records.any() else seconds
    own, others = rates[executors == slow], rates[executors != slow]
    enough = own.size >= 2 or seconds.size <= 2 * numbers.size
    return bool(enough and np.min(own) > SLOWER * np.median(others))
