"""Log-normal: the key is a log-normal sample rounded to a whole number.

The Partial Key Grouping paper uses μ = 1.789, σ = 2.366 (its LN1, the default here) and
μ = 2.245, σ = 1.133 (its LN2), fitted to Orkut's friend requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.hashing import SPARK_SEED, U64, hash_long
from skewless.streams.synthetic import Synthetic, first_bits, next_bits, unit

_SPARK_SEED = np.uint64(SPARK_SEED)
_LARGEST_LOG = 43.0  # samples stop short of the largest long, 2^63 = exp(43.67)


@compiled
def _draw(mu: float, sigma: float, origin: np.uint64, first: int, keys: U64) -> None:
    for i in range(keys.size):
        bits = first_bits(origin, first + i)
        # One normal of a Box-Muller pair: the other would tie a message to its neighbour.
        radius = math.sqrt(-2.0 * math.log(unit(bits)))
        normal = radius * math.cos(2.0 * math.pi * unit(next_bits(bits)))
        sample = math.floor(math.exp(min(mu + sigma * normal, _LARGEST_LOG)) + 0.5)
        keys[i] = hash_long(np.uint64(sample), _SPARK_SEED)


@dataclass(frozen=True)
class LogNormal(Synthetic):
    """Log-normal keys: the long round(exp(mu + sigma · normal)).

    messages: length of the stream.
    mu, sigma: mean and standard deviation of the logarithm.
    """

    messages: int
    mu: float = 1.789
    sigma: float = 2.366

    name: ClassVar[str] = "lognormal"

    def __post_init__(self) -> None:
        self.check_at_least(0, "sigma")
        self.check_finite("mu")
        for param in ("mu", "sigma"):
            if not abs(getattr(self, param)) <= _LARGEST_LOG:
                raise SkewlessError(
                    f"lognormal:{param} is at most {_LARGEST_LOG:g} either way, not "
                    f"{getattr(self, param)}: beyond, nearly all keys would be the same number."
                )
        self.check_at_least(1, "messages")

    def drawer(self) -> Any:
        """Rounded samples, as identities of longs."""
        mu, sigma = float(self.mu), float(self.sigma)
        return lambda origin, first, keys: _draw(mu, sigma, origin, first, keys)
