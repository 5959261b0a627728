"""The key space of Dynamic Key Grouping: baby, teenage and old keys, and how they are promoted.

Section 4.1 of the paper. Items live in parallel arrays; a space is an ordered list of item numbers.
Baby takes every new key. At every cycle baby and teenage are sorted by count, baby is cut to its
size (keys that fall out lose their count and width), free places of teenage are filled, and the
best of baby change places with the worst of teenage (algorithms 1 and 3); teenage and old likewise,
at a slower cycle (algorithm 2). The paper's item also keeps when it was last seen, which no
algorithm reads: neither do we.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, I64
from skewless.sketch.key_table import EMPTY, KeyTable, key_table, slot_of
from skewless.sketch.key_table import reserve as reserve_table

# Not plain numbers: numba would compile what they are handed to for each of them.
BABY, TEENAGE, OLD = np.int64(0), np.int64(1), np.int64(2)
_START = np.int64(0)


class KeySpace(NamedTuple):
    """Key items and the three spaces they are in."""

    table: KeyTable  # key -> item
    slots: I64  # [capacity] of items: where the table holds the item's key
    counts: F64  # [capacity] how often the key came
    widths: I64  # [capacity] how many workers it has
    spaces: I64  # [capacity] BABY, TEENAGE or OLD
    baby: I64  # [capacity] items in order
    teenage: I64  # [teenage places]
    old: I64  # [old places]
    sizes: I64  # [3] how many items each space holds
    spare: I64  # [capacity] room for promotions
    spare_counts: F64  # [capacity] likewise


def key_space(teenage: int, old: int, room: int) -> KeySpace:
    """An empty space with room for that many items."""
    slots, widths, spaces, baby, spare = (np.zeros(room, np.int64) for _ in range(5))
    return KeySpace(
        key_table(room),
        slots,
        np.zeros(room),
        widths,
        spaces,
        baby,
        np.zeros(teenage, np.int64),
        np.zeros(old, np.int64),
        np.zeros(3, np.int64),
        spare,
        np.zeros(room),
    )


def reserve(space: KeySpace, room: int) -> KeySpace:
    """The space, or a larger copy, with room for that many items in all."""
    if room <= space.counts.size:
        return space
    grown = key_space(space.teenage.size, space.old.size, max(room, 2 * space.counts.size))
    used = int(space.table.used[0])
    table = reserve_table(space.table, max(0, grown.counts.size - used))
    for name in ("counts", "widths", "spaces", "baby"):
        getattr(grown, name)[: space.counts.size] = getattr(space, name)
    held = np.flatnonzero(table.values != EMPTY)
    grown.slots[table.values[held]] = held
    return grown._replace(table=table, teenage=space.teenage, old=space.old, sizes=space.sizes)


@inlined
def item_of(space: Any, key: np.uint64, width: int) -> np.int64:
    """The key's item; a new key begins in baby with this width."""
    table = space.table
    slot = slot_of(table.keys, table.values, key)
    item = table.values[slot]
    if item == EMPTY:
        item = table.used[0]
        table.used[0] = item + 1
        table.keys[slot] = key
        table.values[slot] = item
        space.slots[item] = slot
        space.counts[item] = 0.0
        space.widths[item] = width
        space.spaces[item] = BABY
        space.baby[space.sizes[BABY]] = item
        space.sizes[BABY] += 1
    return item


@compiled
def promote_to_teenage(space: Any, keep: int) -> None:
    """Algorithm 1: sort, cut baby to `keep` items, promote."""
    sizes = space.sizes
    _best_first(space.baby, sizes[BABY], space.counts, space.spare)
    sizes[BABY] = min(keep, sizes[BABY])
    _sort(space.teenage, sizes[TEENAGE], space.counts, space.spare, _START)
    _promote(space, space.baby, BABY, space.teenage, TEENAGE)
    _forget_the_rest(space)


@compiled
def promote_to_old(space: Any) -> None:
    """Algorithm 2: sort, promote."""
    _sort(space.teenage, space.sizes[TEENAGE], space.counts, space.spare, _START)
    _sort(space.old, space.sizes[OLD], space.counts, space.spare, _START)
    _promote(space, space.teenage, TEENAGE, space.old, OLD)


# Written out in loops, with arrays at hand to work in: what NumPy has for it takes 20 s to compile.


@compiled
def _sort(items: I64, size: int, counts: F64, merged: I64, first: int) -> None:
    """By falling count; equals keep their order (merge sort). Works in `merged` from `first` on."""
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            left, right = start, middle
            for at in range(start, stop):
                if left < middle and (right >= stop or counts[items[left]] >= counts[items[right]]):
                    merged[first + at] = items[left]
                    left += 1
                else:
                    merged[first + at] = items[right]
                    right += 1
        for at in range(size):
            items[at] = merged[first + at]
        width *= 2


@compiled
def _best_first(items: I64, size: int, counts: F64, spare: I64) -> None:
    """Sort by falling count.

    Most babies came once: they are taken in order, and only the others are sorted.
    """
    least = np.inf
    for at in range(size):
        least = min(least, counts[items[at]])
    above = equals = _START
    for at in range(size):
        item = items[at]
        if counts[item] > least:
            items[above] = item
            above += 1
        else:
            spare[equals] = item
            equals += 1
    _sort(items, above, counts, spare, equals)
    for at in range(equals):
        items[above + at] = spare[at]


@compiled
def _promote(space: Any, source: I64, lower: int, target: I64, upper: int) -> None:
    """Fill free places, then algorithm 3: the first of source against the last of target.

    A winner goes to the head of target, the loser to the tail of source; ties change places too.
    """
    sizes, queue = space.sizes, space.spare
    free = min(target.size - sizes[upper], sizes[lower])
    for at in range(free):
        target[sizes[upper] + at] = source[at]
    sizes[upper] += free
    held = sizes[upper]
    # The queue of source, in which losers line up, and how many of it have won.
    waiting = sizes[lower] - free
    for at in range(waiting):
        queue[at] = source[free + at]
    won = 0
    while won < held and waiting > 0:
        last = target[held - 1 - won]
        if space.counts[last] > space.counts[queue[won]]:
            break
        queue[waiting + won] = last
        won += 1
    for at in range(held - 1, won - 1, -1):
        target[at] = target[at - won]
    for at in range(won):
        target[at] = queue[won - 1 - at]
    for at in range(waiting):
        source[at] = queue[won + at]
        space.spaces[source[at]] = lower
    for at in range(held):
        space.spaces[target[at]] = upper
    sizes[lower] = waiting


@compiled
def _forget_the_rest(space: Any) -> None:
    """Number the items that are in a space from 0 on; all others lose their place in the table."""
    table, sizes, spare, numbers = space.table, space.sizes, space.spare, space.spare_counts
    count = 0
    for kind, items in ((OLD, space.old), (TEENAGE, space.teenage), (BABY, space.baby)):
        for at in range(sizes[kind]):
            spare[count] = items[at]
            items[at] = count
            space.spaces[count] = kind
            count += 1
    for item in range(count):
        numbers[item] = space.counts[spare[item]]
    for item in range(count):
        space.counts[item] = numbers[item]
        numbers[item] = space.widths[spare[item]]
    for item in range(count):
        space.widths[item] = np.int64(numbers[item])
        spare[item] = np.int64(table.keys[space.slots[spare[item]]])
    for before in range(table.used[0]):
        table.values[space.slots[before]] = EMPTY
    for item in range(count):
        key = np.uint64(spare[item])
        slot = slot_of(table.keys, table.values, key)
        table.keys[slot] = key
        table.values[slot] = item
        space.slots[item] = slot
    table.used[0] = count
