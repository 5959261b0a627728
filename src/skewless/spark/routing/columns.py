"""A route table as a Column expression: routing without Python, at the speed of Spark's own hash.

The bucket of a key is the first choice's hash scaled to the number of buckets, as in a kernel. A
head is found in O(1) in a table that the driver lays out without collisions: a head's group gives a
displacement, and the displacement its slot. A head that is split has a list of workers, each as
often as its weight asks for, and the hash of the row's salt picks one: a pure function of the row,
so that a retried task routes as before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.schemes import RouteTable

U64 = npt.NDArray[np.uint64]
_GROUP_BITS, _BASE_BITS = 20, 22
_MOST_TRIES = 1 << 16


class HeadTable(NamedTuple):
    """Heads without collisions: slot = (base + displacement of the group · step) mod slots."""

    displacements: npt.NDArray[np.int64]  # [groups], a power of two
    keys: npt.NDArray[np.int64]  # [slots], a power of two
    values: npt.NDArray[np.int32]  # [slots], -1 = free


def worker_of(identity: Column, table: RouteTable, salted: Column | None = None) -> Column:
    """The worker of a key's identity, an int.

    salted: the hash of the row's salt; a table that splits no head needs none
    """
    worker = _bucket_worker(identity, table)
    if not table.heads.size:
        return worker
    if not table.splits:
        found, head = _whole_head(identity, table)
    elif salted is not None:
        found, head = _split_head(identity, table, salted)
    else:
        raise SkewlessError("A plan that splits hot keys needs a salt: name one with salt=.")
    return F.when(found, head).otherwise(worker)


def _whole_head(identity: Column, table: RouteTable) -> tuple[Column, Column]:
    """Is it a head, and its worker."""
    heads = lay_out(table.heads, table.head_workers)
    slot = slot_of(identity, heads)
    worker = F.get(_ints(heads.values), slot)
    return (F.get(_longs(heads.keys), slot) == identity) & (worker >= 0), worker


def _split_head(identity: Column, table: RouteTable, salted: Column) -> tuple[Column, Column]:
    """Is it a head, and the one of its workers that the salt picks; hashed for heads only."""
    heads = lay_out(table.heads, np.arange(table.heads.size, dtype=np.int32))
    slot = slot_of(identity, heads)
    taken = heads.values >= 0
    starts = np.where(taken, table.head_starts[heads.values], 0)
    counts = np.where(taken, np.diff(table.head_starts)[heads.values], 0)
    count = F.get(_longs(counts), slot)
    at = F.get(_ints(starts), slot) + _scaled(salted, count)
    worker = F.get(_ints(table.head_workers), at)
    return (F.get(_longs(heads.keys), slot) == identity) & (count > 0), worker


def _bucket_worker(identity: Column, table: RouteTable) -> Column:
    size = int(table.buckets.size)
    bucket = _scaled(F.xxhash64(F.lit(2 * table.seed), identity), F.lit(size))
    if np.array_equal(table.buckets, np.arange(size)):
        return bucket
    return F.get(_ints(table.buckets), bucket)


def _scaled(hashed: Column, size: Column) -> Column:
    return F.shiftright(F.shiftrightunsigned(hashed, 33) * size, 31).cast("int")


def slot_of(identity: Column, heads: HeadTable) -> Column:
    """Where a head would stand in the table."""
    mask = F.lit(heads.keys.size - 1)
    group = identity.bitwiseAND(F.lit(heads.displacements.size - 1)).cast("int")
    base = F.shiftrightunsigned(identity, _GROUP_BITS).bitwiseAND(mask)
    step = F.shiftrightunsigned(identity, _GROUP_BITS + _BASE_BITS).bitwiseAND(mask)
    moved = base + F.get(_longs(heads.displacements), group) * step.bitwiseOR(F.lit(1))
    return moved.bitwiseAND(mask).cast("int")


def lay_out(identities: U64, values: npt.NDArray[np.int32]) -> HeadTable:
    """The smallest table in which every head finds a slot of its own, at least twice their number.

    Heads that agree in all bits that a table looks at cannot be parted there, which is likely while
    it is small: one of twice the size looks at more.
    """
    if np.unique(identities).size < identities.size:
        raise SkewlessError("The hot keys of a plan are not distinct: name each key once.")
    slots = 1 << max(1, int(2 * identities.size - 1).bit_length())
    while slots <= 1 << _BASE_BITS:
        table = _lay_out(identities, values, slots)
        if table is not None:
            return table
        slots *= 2
    raise SkewlessError(
        f"The {identities.size} hot keys of a plan find no room on Spark, which has some for "
        f"{1 << (_BASE_BITS - 1)} at most: learn fewer."
    )


def _lay_out(identities: U64, values: npt.NDArray[np.int32], slots: int) -> HeadTable | None:
    """Find a displacement per group so that no two heads share a slot, largest groups first."""
    groups = max(1, slots // 4)
    mask = np.uint64(slots - 1)
    members = (identities & np.uint64(groups - 1)).astype(np.int64)
    bases = (identities >> np.uint64(_GROUP_BITS)) & mask
    steps = (identities >> np.uint64(_GROUP_BITS + _BASE_BITS)) & mask | np.uint64(1)
    displacements = np.zeros(groups, np.int64)
    keys, placed = np.zeros(slots, np.int64), np.full(slots, -1, np.int32)
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], np.arange(groups + 1))
    for group in np.argsort(-np.diff(starts), kind="stable"):
        rows = order[starts[group] : starts[group + 1]]
        if not rows.size:
            break
        for tried in range(min(slots, _MOST_TRIES)):  # slots repeat after as many displacements
            at = ((bases[rows] + np.uint64(tried) * steps[rows]) & mask).astype(np.int64)
            if np.unique(at).size == rows.size and (placed[at] < 0).all():
                break
        else:
            return None
        displacements[group] = tried
        keys[at] = identities[rows].view(np.int64)
        placed[at] = values[rows]
    return HeadTable(displacements, keys, placed)


def literal_array(values: npt.NDArray[np.integer], kind: str) -> Column:
    """Numbers as one literal, which Spark folds before it runs; a literal each takes far longer."""
    return F.split(F.lit(",".join(map(str, values.tolist()))), ",").cast(f"array<{kind}>")


def _longs(values: npt.NDArray[np.integer]) -> Column:
    return literal_array(values, "bigint")


def _ints(values: npt.NDArray[np.integer]) -> Column:
    return literal_array(values, "int")
