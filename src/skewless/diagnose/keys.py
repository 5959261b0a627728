"""The hottest keys of a sample, with what sampling leaves unknown of their shares."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skewless.diagnose.sample import Sample

HOT_KEYS = 10
SIGMAS = 3  # the true share lies within the error in 997 of 1000 samples


@dataclass(frozen=True)
class HotKey:
    """A key by name with its share of all messages, give or take the error."""

    key: str
    share: float
    error: float


@dataclass(frozen=True)
class Frequent:
    """The identities of the hottest keys and how often they are in the sample, hottest first."""

    identities: list[int]
    counts: list[int]


def frequent_keys(sample: Sample, most: int = HOT_KEYS) -> Frequent:
    """The most frequent keys of a sample; those equally frequent in the order of their hashes."""
    keys, counts = np.unique(sample.keys, return_counts=True)
    order = np.lexsort((keys, -counts))[:most]
    return Frequent(keys[order].tolist(), counts[order].tolist())


def share_error(share: float, sample: Sample) -> float:
    """How far the share of a key in the whole may lie from that in the sample; 0: all was read."""
    size = sample.keys.size
    if size >= sample.messages:
        return 0.0
    # Of a key that the sample has once or twice the variance itself is unknown: one more counts.
    variance = max(share * (1 - share), 1 / size) / size * (1 - sample.rate)
    return SIGMAS * math.sqrt(variance)
