"""Every measure, defined once: arrays in, numbers out.

Loads are what each worker got. With unequal machines a worker's load is divided by W times its
share of the total rate, which changes nothing when all are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]


def normalised(loads: Numbers, capacities: Numbers | None = None) -> F64:
    """Loads divided by W times each worker's share of the total rate."""
    plain = np.asarray(loads, np.float64)
    if capacities is None:
        return plain
    rates = np.asarray(capacities, np.float64)
    return plain / (rates.size * rates / rates.sum())


def imbalance(loads: Numbers, capacities: Numbers | None = None) -> float:
    """(max − mean) ÷ total, at the end."""
    total = float(np.sum(loads))
    if total == 0:
        return 0.0
    return float(normalised(loads, capacities).max() - total / len(loads)) / total


def average_imbalance(excesses: Numbers, messages: int) -> float:
    """Mean over evenly spaced checkpoints of (max − mean), divided by the number of messages."""
    return float(np.mean(excesses)) / messages if len(excesses) and messages else 0.0


def percent_imbalance(loads: Numbers, capacities: Numbers | None = None) -> float:
    """λ = (max ÷ mean − 1) · 100."""
    return 100.0 * len(loads) * imbalance(loads, capacities)


def stddev(loads: Numbers) -> float:
    """Population standard deviation of the loads, in messages."""
    return float(np.std(np.asarray(loads, np.float64)))


def stddev_percent(loads: Numbers) -> float:
    """Population standard deviation of the loads in per cent of their total."""
    total = float(np.sum(loads))
    return 100.0 * stddev(loads) / total if total else 0.0


def replication(pairs: int, keys: int) -> float:
    """Distinct (key, worker) pairs ÷ distinct keys; 1 for key grouping, at most W."""
    return pairs / keys if keys else 0.0


def replication_bound(frequencies: Numbers, workers: int, slack: float = 0.0) -> float:
    """Least replication at which no worker need exceed (1 + slack) ÷ W of the stream.

    A key with share p of the messages needs at least ⌈p · W ÷ (1 + slack)⌉ workers.
    """
    shares = np.asarray(frequencies, np.float64)
    shares = shares / shares.sum()
    # The tolerance keeps a share of exactly n/W from rounding up to n + 1 workers.
    needed = np.ceil(shares * workers / (1 + slack) - 1e-9)
    return float(np.maximum(needed, 1).mean())


def disagreement(a: Numbers, b: Numbers) -> float:
    """Share of the messages that two routes send to different workers."""
    return float(np.mean(np.asarray(a) != np.asarray(b))) if len(a) else 0.0


def speed_up(baseline_s: float, ours_s: float) -> float:
    """How many times faster ours is than the baseline."""
    return baseline_s / ours_s
