"""The workers that keys have used, as bits: which of a key's own are below a level is one AND.

A key that left its first choice has a place of its own, with a bit for each worker that it has
used. Beside all keys there is a bit for each worker that is below the level. Of a key's own that
are below it, the next is taken, in a circle, so all are filled up alike. Bits come in words
of 64 workers. With one word there is nothing to look for; with up to 64, a word of bits says in
which of them a key has any, and the next three of these are looked at; with more, only the one
where the key is. None of it needs a branch that the processor could not foresee, which would cost
as much time as all the rest. A key that has workers in further words looks at all of them before
it takes one that is not its own yet (`own_that_fits`).

The places are a table without chains: the later of two keys that have the same place takes it, and
the other is where its first choice puts it, as a key that never moved.
"""

from __future__ import annotations

import numpy as np

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of, pick, trailing_zeros
from skewless.hashing import next_choice, stride
from skewless.schemes.api import F64, U64

KEY, GROUPS, OWN = range(3)  # columns: whose and where it is, words with own workers, first word
_MOST_WORDS = 1 << 22  # of all places together: beyond some 16,000 workers there are fewer places
_ONE, _SIX, _LAST = np.uint64(1), np.uint64(6), np.uint64(63)
_TAG = np.uint64(0xFFFFFFFF)
_HOME = np.uint64(31)  # bits for the worker where the key is, below those of its hash
_HOMES = np.uint64((1 << 31) - 1)


def words_for(workers: int) -> int:
    """How many words have a bit for each worker."""
    return (workers + 63) // 64


def empty_places(places: int, workers: int) -> U64:
    """So many places (a power of two) that nobody has, or fewer: [places, OWN + words]."""
    columns = OWN + words_for(workers)
    while places * columns > _MOST_WORDS and places > 1:
        places //= 2
    return np.zeros((places, columns), np.uint64)


@inlined
def _tag_of(hashed: np.uint64) -> np.uint64:
    """Whose a place is: never 0, which is nobody's."""
    return ((hashed >> np.uint64(16)) & _TAG) + _ONE


@inlined
def place_of(moved: U64, hashed: np.uint64) -> tuple[np.uint64, bool, np.uint64]:
    """The number of the key's place, whether it is known there, and where the key is then."""
    number = hashed & np.uint64(moved.shape[0] - 1)
    entry = moved[number, KEY]
    return number, entry >> _HOME == _tag_of(hashed), entry & _HOMES


@inlined
def _rotate(bits: np.uint64, by: np.uint64) -> np.uint64:
    return (bits >> by) | (bits << ((np.uint64(64) - by) & _LAST))


@inlined
def _own_below(
    moved: U64, below: U64, number: np.uint64, start: np.uint64, near: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """The first of these words, if any is left, and the key's workers in it below the level."""
    word = (start + trailing_zeros(near)) & _LAST
    return word, pick(near != 0, moved[number, OWN + word] & below[word], np.uint64(0))


@inlined
def next_below(
    moved: U64, below: U64, number: np.uint64, home: np.uint64
) -> tuple[np.uint64, bool]:
    """The next of a known key's own workers below the level, and whether one was found.

    The order is from word to word, beginning with that of `home`, and in each word from its bit on.
    It ends with the third word that has any.
    """
    word = home >> _SIX
    if below.size == 1:
        bits = moved[number, OWN] & below[0]
    elif below.size <= 64:
        near = _rotate(moved[number, GROUPS], word)
        bits = moved[number, OWN + word] & below[word]
        near &= near - _ONE
        second, of_second = _own_below(moved, below, number, word, near)
        near &= near - _ONE
        third, of_third = _own_below(moved, below, number, word, near)
        second, of_second = (
            pick(of_second != 0, second, third),
            pick(of_second != 0, of_second, of_third),
        )
        word, bits = pick(bits != 0, word, second), pick(bits != 0, bits, of_second)
    else:
        bits = moved[number, OWN + word] & below[word]
    bit = home & _LAST
    worker = (word << _SIX) + ((bit + trailing_zeros(_rotate(bits, bit))) & _LAST)
    return worker, bits != 0


@compiled
def own_that_fits(
    moved: U64, loads: F64, number: np.uint64, home: np.int64, full: float
) -> np.int64:
    """A known key's next worker with a load below `full`, from its word on, or −1."""
    words = moved.shape[1] - OWN
    word = home >> 6
    for _ in range(words):
        bits = moved[number, OWN + word]
        while bits != 0:
            worker = np.int64(64 * word) + np.int64(trailing_zeros(bits))
            if loads[worker] < full:
                return worker
            bits &= bits - _ONE
        word += 1
        word = word if word < words else np.int64(0)
    return np.int64(-1)


@inlined
def next_that_fits(
    loads: F64, first: np.int64, second: np.int64, prime: np.int64, full: float
) -> np.int64:
    """The first in a key's order of choices with a load below `full`, or its first choice."""
    workers, worker = np.int64(loads.size), first
    step = stride(first, second, prime)
    for _ in range(workers if workers > 1 else 0):
        if loads[worker] < full:
            break
        worker = next_choice(worker, step, workers, prime)
    return worker


@compiled
def remember(
    moved: U64, number: np.uint64, hashed: np.uint64, first: np.int64, worker: np.int64
) -> None:
    """The key is with this worker now; if its place was another's, it is the key's from now on."""
    tag = _tag_of(hashed)
    if moved[number, KEY] >> _HOME != tag:
        for column in range(moved.shape[1]):
            moved[number, column] = 0
        _own(moved, number, np.uint64(first))
    _own(moved, number, np.uint64(worker))
    moved[number, KEY] = (tag << _HOME) | np.uint64(worker)


@inlined
def _own(moved: U64, number: np.uint64, worker: np.uint64) -> None:
    word = worker >> _SIX
    moved[number, GROUPS] |= _ONE << (word & _LAST)
    moved[number, OWN + word] |= _ONE << (worker & _LAST)


@compiled
def find_below(below: U64, loads: F64, level: float) -> int:
    """Set the bits of the workers below the level; the one with the least load, of equals first."""
    for word in range(below.size):
        bits = np.uint64(0)
        for place in range(min(64, loads.size - 64 * word)):
            bits |= np.uint64(loads[64 * word + place] < level) << np.uint64(place)
        below[word] = bits
    lowest, least = 0, least_of(loads)
    while loads[lowest] != least:
        lowest += 1
    return lowest


@inlined
def keep_home(moved: U64, number: np.uint64, known: bool, worker: np.uint64) -> None:
    """A known key is with this worker now, which is its own; where it is not known, nothing."""
    entry = moved[number, KEY]
    moved[number, KEY] = pick(known, (entry & ~_HOMES) | worker, entry)


@inlined
def keep_below(below: U64, worker: np.uint64, is_below: np.uint64) -> None:
    """Set or clear, by 1 or 0, the bit of a worker whose load has changed."""
    word, place = worker >> _SIX, worker & _LAST
    below[word] = (below[word] & ~(_ONE << place)) | (is_below << place)
