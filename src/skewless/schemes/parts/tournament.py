"""A tournament of workers: who has the least, kept up to date one worker at a time.

Finding the least of W values by looking at all of them takes W steps for every message. Here they
are the leaves of a binary tree, and every inner node holds the lesser of its two children: the
winner is known at once, and a changed value plays ⌈log2 W⌉ matches on its way to the root. What
plays is one whole number: the bits of a value, which order values that are not negative, with the
worker in place of the last ⌈log2 W⌉ ones. So a match is one comparison, needs no branch, and
waits for no memory but its opponent's, which is known beforehand. Values equal but for those bits
(2^-52 · W of the value) count as equal, and of equals the first worker wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64, I64

_NEVER = np.iinfo(np.int64).max


class Tournament(NamedTuple):
    """Node 1 is the root, node n has the children 2n and 2n + 1, leaf w is node L + w."""

    values: F64  # [W]
    players: I64  # [2L] L ≥ W a power of two


def tournament_of(values: F64) -> Tournament:
    """All matches played; no value may be negative."""
    leaves = 1 << (values.size - 1).bit_length()
    tournament = Tournament(np.zeros(values.size), np.full(2 * leaves, _NEVER))
    for worker in range(values.size):
        play(tournament, worker, float(values[worker]))
    return tournament


@inlined
def least(tournament: Any) -> np.int64:
    """The worker with the least value; of equals, the first."""
    players = tournament.players
    return players[1] & ((players.size >> 1) - 1)


@inlined
def set_value(tournament: Any, worker: int, value: float) -> None:
    """Give a worker another value; a negative one is as good as 0."""
    players = tournament.players
    tournament.values[worker] = value
    leaves = players.size >> 1
    bits = np.float64(max(value, 0.0)).view(np.int64)
    player = (bits & ~np.int64(leaves - 1)) | np.int64(worker)
    node = leaves + worker
    players[node] = player
    while node > 1:
        player = min(player, players[node ^ 1])
        node >>= 1
        players[node] = player


@compiled
def play(tournament: Any, worker: int, value: float) -> None:
    """`set_value` where speed does not matter."""
    set_value(tournament, worker, value)
