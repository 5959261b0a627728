"""Identities of int literals, which seeds are made of: without Arrow, which is slow to load."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import xxhash

SPARK_SEED = 42


def of_literals(*numbers: int) -> npt.NDArray[np.uint64]:
    """The identities of int literals; plain Python, which a start-up can wait for."""
    hashed = (
        xxhash.xxh64_intdigest(n.to_bytes(4, "little", signed=True), SPARK_SEED) for n in numbers
    )
    return np.array(list(hashed), np.uint64)
