"""Keys to 64-bit identities, and identities to a family of distinct workers."""

from __future__ import annotations

from skewless.hashing.columns import (
    SPARK_SEED,
    identities,
    identity,
)
from skewless.hashing.family import (
    SALT,
    choice_seeds,
    choices,
    first_choice,
    least_prime,
    next_choice,
    salt_seed,
    scale,
    second_choice,
    source_seeds,
    stride,
)
from skewless.hashing.inverse import unhash_longs
from skewless.hashing.xxh64 import (
    U64,
    hash_bytes,
    hash_int,
    hash_long,
)

__all__ = [
    "SALT",
    "SPARK_SEED",
    "U64",
    "choice_seeds",
    "choices",
    "first_choice",
    "hash_bytes",
    "hash_int",
    "hash_long",
    "identities",
    "identity",
    "least_prime",
    "next_choice",
    "salt_seed",
    "scale",
    "second_choice",
    "source_seeds",
    "stride",
    "unhash_longs",
]
