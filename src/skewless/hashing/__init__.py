"""Keys to 64-bit identities, and identities to a family of distinct workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewless.hashing.family import (
    SALT,
    check_seed,
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
from skewless.hashing.literals import SPARK_SEED
from skewless.hashing.xxh64 import (
    U64,
    hash_bytes,
    hash_int,
    hash_long,
)

if TYPE_CHECKING:
    from skewless.hashing.columns import identities, identity


def __getattr__(name: str) -> Any:
    """Import what takes Arrow on first use: most streams need none of it."""
    if name in ("identities", "identity"):
        from skewless.hashing import columns

        return getattr(columns, name)
    raise AttributeError(f"module 'skewless.hashing' has no attribute {name!r}")


__all__ = [
    "SALT",
    "SPARK_SEED",
    "U64",
    "check_seed",
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
