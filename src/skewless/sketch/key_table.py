"""A growing table from a key's identity to a whole number, for kernels.

Open addressing with linear probing over two arrays. A kernel may insert while there is room; the
host makes room between spans with `reserve`, so the arrays never change under a running kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined

EMPTY = np.int64(-1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SMALLEST = 1 << 10


class KeyTable(NamedTuple):
    """Arrays of one length, a power of two; `EMPTY` marks a free slot, values are ≥ 0."""

    keys: npt.NDArray[np.uint64]  # [capacity]
    values: npt.NDArray[np.int64]  # [capacity]
    used: npt.NDArray[np.int64]  # [1] slots taken


def key_table(room: int = 0) -> KeyTable:
    """An empty table with room for that many keys."""
    capacity = _SMALLEST
    while capacity < 2 * room:
        capacity *= 2
    return KeyTable(
        np.zeros(capacity, np.uint64), np.full(capacity, EMPTY, np.int64), np.zeros(1, np.int64)
    )


@inlined
def slot_of(
    keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int64], key: np.uint64
) -> np.int64:
    """Where the key is, or the free slot where it belongs."""
    mask = keys.size - 1
    # Fibonacci hashing: also fit for identities that were never mixed.
    slot = np.int64((key * _GOLDEN) >> np.uint64(20)) & mask
    while values[slot] != EMPTY and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def _rehash(old: KeyTable, new: KeyTable) -> None:
    for i in range(old.keys.size):
        if old.values[i] != EMPTY:
            slot = slot_of(new.keys, new.values, old.keys[i])
            new.keys[slot] = old.keys[i]
            new.values[slot] = old.values[i]
    new.used[0] = old.used[0]


def reserve(table: KeyTable, extra: int) -> KeyTable:
    """The table, or a larger copy, with room for `extra` more keys at most half full."""
    wanted = int(table.used[0]) + extra
    if 2 * wanted <= table.keys.size:
        return table
    grown = key_table(wanted)
    if table.used[0]:
        _rehash(table, grown)
    return grown


def entries(table: KeyTable) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The keys and values held, ordered by key."""
    held = table.values != EMPTY
    keys, values = table.keys[held], table.values[held]
    order = np.argsort(keys)
    return keys[order], values[order]


@compiled
def _fill(table: KeyTable, keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int64]) -> None:
    for i in range(keys.size):
        slot = slot_of(table.keys, table.values, keys[i])
        table.keys[slot] = keys[i]
        table.values[slot] = values[i]
    table.used[0] = keys.size


def table_of(keys: npt.NDArray[np.uint64], values: npt.NDArray[np.int64]) -> KeyTable:
    """A table of these distinct keys and their values."""
    table = key_table(keys.size)
    _fill(table, keys, values)
    return table
