"""Where heads and buckets of distribution-aware key grouping lie, first and after a replan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.schemes.api import F64, I64, U64
from skewless.schemes.parts.packing import largest_first, repack


class Layout(NamedTuple):
    """A place for each head and each bucket."""

    keys: U64  # [h] ascending
    heads: I64  # [h, 2] workers; twice the same unless heads are split
    buckets: I64  # [b] workers


class Heads(NamedTuple):
    """Keys that have, or should have, a place of their own."""

    keys: U64  # [h] ascending
    weights: F64  # [h] messages
    buckets: I64  # [h] the bucket that each would be in otherwise
    faded: npt.NDArray[np.bool_]  # [h] no heavy hitter any more


class Packing(NamedTuple):
    """How a variant packs."""

    workers: int
    halves: int  # parts of a head: 1, or 2 to split it
    power: int  # an item's load is its count to this power
    tail: bool  # whether buckets are packed too

    def items(self, heads: Heads, buckets: int) -> int:
        """How many items there are to move."""
        return heads.keys.size * self.halves + buckets * self.tail


def first_layout(old: Layout, heads: Heads, counted: F64, packing: Packing) -> Layout:
    """Pack from scratch, whatever lay where."""
    loads = _loads(heads, counted, packing)
    return _layout(largest_first(loads, packing.workers), heads, old, packing)


def next_layout(old: Layout, heads: Heads, counted: F64, packing: Packing, budget: float) -> Layout:
    """Pack for new counts, moving at most that share of the items.

    Up to half of the moves let faded heads go back to their buckets, the lightest first, so that
    the table does not grow; the rest even out the loads.
    """
    moves = int(budget * packing.items(heads, old.buckets.size) + 1e-9)
    homes = _homes(old, heads)
    away = (homes[:, : packing.halves] != old.buckets[heads.buckets, None]).sum(axis=1)
    leaving = np.flatnonzero(heads.faded)
    leaving = leaving[np.lexsort((heads.weights[leaving], away[leaving]))]
    leaving = leaving[np.cumsum(away[leaving]) <= (moves + 1) // 2]
    moves = min(moves, moves - int(away[leaving].sum()))
    stay = np.setdiff1d(np.arange(heads.keys.size), leaving)
    homes = homes[stay]
    heads = Heads(heads.keys[stay], heads.weights[stay], heads.buckets[stay], heads.faded[stay])

    loads = _loads(heads, counted, packing)
    there = [homes[:, half] for half in range(packing.halves)]
    items = np.concatenate([*there, old.buckets] if packing.tail else there)
    return _layout(repack(loads, items, packing.workers, moves), heads, old, packing)


def _homes(old: Layout, heads: Heads) -> I64:
    """Where each head is now: at its own place, or with its bucket."""
    homes = np.repeat(old.buckets[heads.buckets, None], 2, axis=1)
    _, here, there = np.intersect1d(heads.keys, old.keys, return_indices=True)
    homes[here] = old.heads[there]
    return homes


def _loads(heads: Heads, counted: F64, packing: Packing) -> F64:
    """The loads of heads, or of their first and then second halves, and of buckets without them."""
    rest = counted.copy()
    np.subtract.at(rest, heads.buckets, heads.weights)
    rest = np.maximum(rest, 0.0)  # the estimates of heads may exceed what came
    loads = [heads.weights / packing.halves] * packing.halves
    return np.asarray(np.concatenate([*loads, rest] if packing.tail else loads) ** packing.power)


def _layout(workers: I64, heads: Heads, old: Layout, packing: Packing) -> Layout:
    count = heads.keys.size
    first, last = workers[:count], workers[(packing.halves - 1) * count :][:count]
    buckets = workers[packing.halves * count :] if packing.tail else old.buckets
    return Layout(heads.keys, np.stack([first, last], axis=1), buckets)
