"""Back from identities to keys: the hash of a long is a bijection, for each of its steps is one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skewless.hashing.literals import SPARK_SEED
from skewless.hashing.xxh64 import P1, P2, P3, P4, P5, U64

_INVERSE = {prime: np.uint64(pow(int(prime), -1, 1 << 64)) for prime in (P1, P2, P3)}


def unhash_longs(identities: U64, seed: int = SPARK_SEED) -> npt.NDArray[np.int64]:
    """The longs whose xxhash64 these are."""
    h = _unshift(identities, 32)
    h = _unshift(h * _INVERSE[P3], 29)
    h = _unshift(h * _INVERSE[P2], 33)
    h = _rotate_back((h - P4) * _INVERSE[P1], 27)
    h = h ^ np.uint64((seed + int(P5) + 8) % (1 << 64))
    h = _rotate_back(h * _INVERSE[P1], 31)
    return (h * _INVERSE[P2]).view(np.int64)


def _unshift(x: U64, bits: int) -> U64:
    """Undo x ^= x >> bits."""
    result = x
    for shift in range(bits, 64, bits):
        result = result ^ (x >> np.uint64(shift))
    return result


def _rotate_back(x: U64, bits: int) -> U64:
    return (x >> np.uint64(bits)) | (x << np.uint64(64 - bits))
