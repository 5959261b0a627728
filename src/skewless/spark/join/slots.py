"""Slots that Spark's own hash sends where a plan wants them.

Spark places a row of a join on (key, slot) at `pmod(hash(key, slot), partitions)`. It hashes column
by column, the hash so far being the seed of the next: with the hash of a key's columns known, the
place of a slot is one more step of its murmur3, done here for thousands of slots at once.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


def places(key_hashes: int | I64, slots: I32, partitions: int) -> I64:
    """The partition of each slot of a key whose columns Spark hashes to `key_hashes`.

    Or of each key, if there are several of them and one slot.
    """
    with np.errstate(over="ignore"):
        k = slots.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = _turned(k, 15) * np.uint32(0x1B873593)
        h = np.asarray(key_hashes).astype(np.uint32) ^ k
        h = _turned(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h = h ^ np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h = h ^ (h >> np.uint32(16))
    return h.view(np.int32).astype(np.int64) % partitions


def search(key_hash: int, wanted: I64, partitions: int, below_zero: bool = False) -> I32:
    """A slot for each wanted partition, none of them twice.

    Slot 0, where the key's rows would be without a plan, serves too.

    below_zero: take slots from −1 downwards
    """
    needed = np.bincount(wanted, minlength=partitions)
    count = int(4 * partitions * max(1, needed.max(initial=0)))
    while True:
        slots = np.arange(count, dtype=np.int32)
        slots = -1 - slots if below_zero else slots
        at = places(key_hash, slots, partitions)
        if (np.bincount(at, minlength=partitions) >= needed).all():
            break
        count *= 2
    by_place = np.argsort(at, kind="stable")  # slots in order within each partition
    starts = np.searchsorted(at[by_place], np.arange(partitions))
    order = np.argsort(wanted, kind="stable")
    first = np.searchsorted(wanted[order], np.arange(partitions))
    rank = np.arange(wanted.size) - first[wanted[order]]
    found = np.empty(wanted.size, np.int32)
    found[order] = slots[by_place[starts[wanted[order]] + rank]]
    return found


def _turned(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))
