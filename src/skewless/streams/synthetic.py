"""Streams drawn at random, and the random numbers they are drawn from.

Message i of a stream draws from hashes of (seed, i) alone. So memory is constant, any chunk can be
produced without the ones before it, and the stream does not depend on how it is cut.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from skewless.arguments import whole
from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.streams import api

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MASK = (1 << 64) - 1


@inlined
def _mix(x: np.uint64) -> np.uint64:
    """The output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def first_bits(origin: np.uint64, message: int) -> np.uint64:
    """The first 64 random bits of a message."""
    return _mix(origin + np.uint64(message) * _STEP)


@inlined
def next_bits(bits: np.uint64) -> np.uint64:
    """64 more random bits after these."""
    return _mix(bits + _STEP)


@inlined
def unit(bits: np.uint64) -> np.float64:
    """Random bits as a number above 0 and up to 1."""
    return (np.float64(bits >> np.uint64(11)) + 1.0) * 2.0**-53


def _origin(seed: int) -> np.uint64:
    # Seeds 0, 1, 2 … must not begin at neighbouring points of one sequence.
    with np.errstate(over="ignore"):  # as Python, which need not be compiled for one number
        mixed = _mix.py_func(np.uint64(whole("A seed", seed) & _MASK) + _STEP)
        return np.uint64(_mix.py_func(mixed ^ _STEP))


class Synthetic(api.Stream):
    """Base of the random streams: a dataclass with a field `messages` that implements `draw`."""

    messages: int

    def length(self) -> int:
        """The number of messages, as asked for."""
        return self.messages

    def produce(self, seed: int, source_column: str | None) -> Iterator[api.Chunk]:
        """Chunks drawn one by one."""
        self.refuse_sources(source_column)
        origin = _origin(seed)
        draw = self.drawer()
        for first in range(0, self.messages, api.CHUNK_MESSAGES):
            count = min(api.CHUNK_MESSAGES, self.messages - first)
            keys = np.empty(count, np.uint64)
            draw(origin, first, keys)
            yield api.Chunk(keys, None)

    @abstractmethod
    def drawer(self) -> Any:
        """A function (origin, first message, keys) that fills `keys` with identities."""

    def check_at_least(self, least: float, *params: str) -> None:
        """Refuse a parameter below `least`, or one that is infinite."""
        for param in params:
            value = getattr(self, param)
            if not value >= least:
                raise SkewlessError(f"{self.name}:{param} must be at least {least:g}, not {value}.")
            self.check_finite(param)

    def check_finite(self, param: str) -> None:
        """Refuse a parameter that is no finite number."""
        value = getattr(self, param)
        if not math.isfinite(value):
            raise SkewlessError(f"{self.name}:{param} must be a finite number, not {value}.")
