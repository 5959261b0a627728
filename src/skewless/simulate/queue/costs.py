"""What a message costs: the same for all, by its key, or drawn for each.

A key's cost needs no table: its value is picked by a hash of the key and the seed. Where each value
must belong to exactly as many keys, the keys have to be known: the longs 1 … n, as of `zipf`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from skewless.compiled import allocating, compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import choice_seeds, hash_long, identities, scale
from skewless.schemes.api import F64, I64, U64
from skewless.spec import Described, build
from skewless.streams import Stream

LEAST, MOST = 1e-9, 1e9  # of loads, capacities and costs: their quotients stay finite


@inlined
def exponential(number: np.uint64, origin: np.uint64) -> float:
    """A draw with mean 1 for the message of this number."""
    bits = hash_long(number, origin) >> np.uint64(11)
    return -math.log((np.float64(bits) + 1.0) * 2.0**-53)


@allocating
def _pick(keys: U64, values: F64, origin: np.uint64) -> F64:
    out = np.empty(keys.size)
    size = np.uint64(values.size)
    for i in range(keys.size):
        out[i] = values[scale(hash_long(keys[i], origin), size)]
    return out


@allocating
def _draw(first: int, count: int, mean: float, origin: np.uint64) -> F64:
    out = np.empty(count)
    for i in range(count):
        out[i] = mean * exponential(np.uint64(first + i), origin)
    return out


def check_positive(what: str, value: float) -> None:
    """Refuse what is not a positive number, or so small or large that times would have no end."""
    if not 0 < value < math.inf:
        raise SkewlessError(f"{what} must be a positive number, not {value}.")
    if not LEAST <= value <= MOST:
        raise SkewlessError(f"{what} must be from {LEAST:g} to {MOST:g}, not {value:g}.")


class Costs(Described, ABC):
    """Base of all costs: a frozen dataclass of parameters."""

    @abstractmethod
    def of(self, keys: U64, first: int, seed: int) -> F64:
        """The costs of these messages, of which the first has this number in the stream."""

    @abstractmethod
    def average(self, stream: Stream, seed: int) -> float:
        """The mean cost of a message: exact; costs by key read the stream once for it."""

    def check_positive(self, *params: str) -> None:
        """Refuse a parameter that is not a positive number of a size to reckon with."""
        for param in params:
            check_positive(f"{self.name}:{param}", getattr(self, param))


@dataclass(frozen=True)
class Constant(Costs):
    """Every message costs the same."""

    value: float = 1.0

    name: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        self.check_positive("value")

    def of(self, keys: U64, first: int, seed: int) -> F64:
        """The value."""
        return np.full(keys.size, float(self.value))

    def average(self, stream: Stream, seed: int) -> float:
        """The value."""
        return self.value


class ByKey(Costs):
    """A key's cost is one of some values.

    min, max: the least and the greatest value.
    values: how many there are.
    keys: if given, keys are the longs 1 … keys and each value belongs to as many of them (give or
    take one); if 0, each key has a value drawn for itself, whatever it is.
    """

    min: float
    max: float
    values: int
    keys: int

    def __post_init__(self) -> None:
        self.check_positive("min", "max", "values")
        if self.keys < 0 or 0 < self.keys < self.values:
            raise SkewlessError(
                f"{self.name}:keys must be 0 or at least the number of values, "
                f"not {self.keys} for {self.values} values."
            )
        if self.min > self.max:
            raise SkewlessError(
                f"{self.name} needs min ≤ max, not min={self.min:g} and max={self.max:g}."
            )

    @abstractmethod
    def levels(self) -> F64:
        """The values a cost may have."""

    def of(self, keys: U64, first: int, seed: int) -> F64:
        """The value of each key; one that is not among those known has a value drawn for it."""
        values = _levels(self)
        drawn = np.asarray(_pick(keys, values, _origin(seed, 1)))
        if not self.keys:
            return drawn
        known, levels = _deal(self.keys, self.values, seed)
        at = np.minimum(np.searchsorted(known, keys), self.keys - 1)
        return np.where(known[at] == keys, values[levels[at]], drawn)

    def average(self, stream: Stream, seed: int) -> float:
        """Over the whole stream, read once."""
        total, messages = 0.0, 0
        for chunk in stream.chunks(seed):
            total += float(self.of(chunk.keys, messages, seed).sum())
            messages += chunk.keys.size
        return total / messages


@dataclass(frozen=True)
class Evenly(ByKey):
    """Values at equal distances from min to max, assigned to keys at random."""

    min: float = 1.0
    max: float = 64.0
    values: int = 64
    keys: int = 0

    name: ClassVar[str] = "evenly"

    def levels(self) -> F64:
        """At equal distances."""
        return np.linspace(self.min, self.max, self.values)


@dataclass(frozen=True)
class Geometric(ByKey):
    """Values at equal ratios from min to max, assigned to keys at random."""

    min: float = 1.0
    max: float = 64.0
    values: int = 64
    keys: int = 0

    name: ClassVar[str] = "geometric"

    def levels(self) -> F64:
        """At equal ratios."""
        return np.geomspace(self.min, self.max, self.values)


@dataclass(frozen=True)
class Exponential(Costs):
    """Drawn for each message, whatever its key."""

    mean: float = 1.0

    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        self.check_positive("mean")

    def of(self, keys: U64, first: int, seed: int) -> F64:
        """A draw for each."""
        return np.asarray(_draw(first, keys.size, self.mean, _origin(seed, 2)))

    def average(self, stream: Stream, seed: int) -> float:
        """As asked for."""
        return self.mean


@lru_cache(maxsize=16)
def _levels(costs: ByKey) -> F64:
    return costs.levels()


@lru_cache(maxsize=4)
def _deal(keys: int, values: int, seed: int) -> tuple[U64, I64]:
    """The identities of the longs 1 … keys, ascending, and the number of each one's value."""
    known = identities(np.arange(1, keys + 1))
    levels = np.random.default_rng(int(_origin(seed, 1))).permutation(keys) % values
    order = np.argsort(known)
    return known[order], levels[order]


@lru_cache(maxsize=64)
def _origin(seed: int, use: int) -> np.uint64:
    """A hash seed of its own for each use of random numbers."""
    return np.uint64(_hash(np.uint64(use), choice_seeds(seed)[1]))


@compiled
def _hash(x: np.uint64, seed: np.uint64) -> np.uint64:
    return hash_long(x, seed)


@allocating
def _arrive(first: int, count: int, last: float, origin: np.uint64) -> F64:
    out = np.empty(count)
    for i in range(count):
        last += exponential(np.uint64(first + i), origin)
        out[i] = last
    return out


def poisson_times(first: int, count: int, last: float, seed: int) -> F64:
    """Arrival times, in mean intervals, of messages `first` … after the one that came at `last`."""
    return np.asarray(_arrive(first, count, last, _origin(seed, 3)))


COSTS: dict[str, type[Costs]] = {
    costs.name: costs for costs in (Constant, Evenly, Geometric, Exponential)
}


def costs_of(costs: Costs | str) -> Costs:
    """Costs from their object or their spec string, such as `evenly:min=1,max=64,values=64`."""
    return costs if isinstance(costs, Costs) else build(COSTS, costs, "cost")
