"""Exact counting of distinct keys and distinct (key, worker) pairs in bounded memory.

An open-addressing table holds each key's identity and the set of its workers as bits. When the
table may not grow any further it is written out, split by the identity's lowest byte into files,
and emptied; at the end each file is read alone, equal keys are joined and their bits counted. So
memory is bounded by the limit, whatever the number of keys, and the result stays exact.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.schemes.api import I32, U64

DEFAULT_LIMIT_BYTES = 2 << 30
_SMALLEST = 1 << 12
_FIRST = 1 << 20  # bytes
_PARTS = 256
_SPAN = 1 << 16
_BLOCK = 1 << 22  # slots written out at a time: what is copied on the way stays small
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Counted(NamedTuple):
    """What was counted."""

    keys: int
    pairs: int


class PairCounter:
    """Feed it keys and their workers; ask for the counts at the end."""

    def __init__(self, workers: int, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._words = (workers + 63) // 64
        slot_bytes = 8 * (1 + self._words)
        # A table grows by copying: old and new together must stay within the limit.
        self._most = 1 << max(0, (limit_bytes * 2 // 3 // slot_bytes)).bit_length() - 1
        if self._most < _SMALLEST:
            raise SkewlessError(
                f"Counting pairs over {workers} workers needs a limit of at least "
                f"{_SMALLEST * slot_bytes * 3 // 2} bytes, not {limit_bytes}."
            )
        # So large that few runs grow it: to move it is compiled only then.
        self._capacity = max(
            _SMALLEST, min(self._most, 1 << (_FIRST // slot_bytes - 1).bit_length())
        )
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._clear()

    def _clear(self) -> None:
        self._keys = np.zeros(self._capacity, np.uint64)
        self._bits = np.zeros((self._capacity, self._words), np.uint64)
        self._used = 0

    def add(self, keys: U64, workers: I32) -> None:
        """Count these messages."""
        for start in range(0, keys.size, _SPAN):
            part = slice(start, start + _SPAN)
            done = 0
            while done < keys[part].size:
                self._make_room()
                room = self._capacity * 3 // 4 - self._used
                done, self._used = _insert(
                    self._keys, self._bits, keys[part], workers[part], done, self._used, room
                )

    def warm_up(self) -> None:
        """Compile what `add` needs, or load what was compiled."""
        none = np.empty(0, np.uint64), np.empty(0, np.int32)
        _insert(self._keys, self._bits, *none, 0, self._used, 0)

    def _make_room(self) -> None:
        if self._used < self._capacity // 2:
            return
        if self._capacity * 2 <= self._most:
            keys, bits = self._keys, self._bits
            self._capacity *= 2
            self._clear()
            self._used = _reinsert(keys, bits, self._keys, self._bits)
        elif self._used >= self._capacity * 5 // 8:
            self._spill()

    def _spill(self) -> None:
        try:
            self._write_out()
        except OSError as error:
            raise SkewlessError(
                f"So many pairs of key and worker are counted in temporary files, and these cannot "
                f"be written ({error.strerror}): make room, or set TMPDIR to a larger disk."
            ) from None
        self._clear()

    def _write_out(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="skewless-pairs-")
        for start in range(0, self._capacity, _BLOCK):
            block = slice(start, start + _BLOCK)
            held = self._bits[block].any(axis=1)
            rows = np.column_stack([self._keys[block][held], self._bits[block][held]])
            parts = (rows[:, 0] % _PARTS).astype(np.int64)
            rows = rows[np.argsort(parts, kind="stable")]
            bounds = np.append(0, np.cumsum(np.bincount(parts, minlength=_PARTS)))
            for part in range(_PARTS):
                with (Path(self._folder.name) / f"{part}").open("ab") as file:
                    rows[bounds[part] : bounds[part + 1]].tofile(file)

    @property
    def spilled(self) -> bool:
        """Something had to be written out."""
        return self._folder is not None

    def count(self) -> Counted:
        """Distinct keys and distinct pairs so far."""
        if self._folder is None:
            return Counted(self._used, _popcount(self._bits))
        self._spill()
        keys = pairs = 0
        for path in sorted(Path(self._folder.name).iterdir()):
            rows = np.fromfile(path, np.uint64).reshape(-1, 1 + self._words)
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            starts = np.flatnonzero(np.append(True, rows[1:, 0] != rows[:-1, 0])[: len(rows)])
            if starts.size:
                keys += starts.size
                pairs += _popcount(np.bitwise_or.reduceat(rows[:, 1:], starts, axis=0))
        return Counted(keys, pairs)


@inlined
def _slot(keys: U64, bits: U64, key: np.uint64) -> np.int64:
    mask = keys.size - 1
    slot = np.int64((key * _GOLDEN) >> np.uint64(20)) & mask
    while keys[slot] != key and _taken(bits, slot):
        slot = (slot + 1) & mask
    return slot


@inlined
def _taken(bits: U64, slot: np.int64) -> bool:
    """A held key has at least one worker."""
    for word in range(bits.shape[1]):  # noqa: SIM110 (any() over a generator does not compile)
        if bits[slot, word]:
            return True
    return False


@compiled
def _insert(
    keys: U64, bits: U64, new: U64, workers: I32, start: int, used: int, room: int
) -> tuple[int, int]:
    """Insert from `start` on until the room is used; where it stopped and the slots in use."""
    limit = used + room
    for i in range(start, new.size):
        slot = _slot(keys, bits, new[i])
        word = workers[i] >> 6
        bit = np.uint64(1) << np.uint64(workers[i] & 63)
        if not bits[slot, word] & bit:
            if not _taken(bits, slot):
                if used >= limit:
                    return i, used
                used += 1
                keys[slot] = new[i]
            bits[slot, word] |= bit
    return new.size, used


@compiled
def _reinsert(old_keys: U64, old_bits: U64, keys: U64, bits: U64) -> int:
    used = 0
    for i in range(old_keys.size):
        if _taken(old_bits, i):
            slot = _slot(keys, bits, old_keys[i])
            keys[slot] = old_keys[i]
            for word in range(bits.shape[1]):
                bits[slot, word] = old_bits[i, word]
            used += 1
    return used


def _popcount(bits: npt.NDArray[np.uint64]) -> int:
    total = 0
    for start in range(0, len(bits), 1 << 20):
        halves = np.ascontiguousarray(bits[start : start + (1 << 20)]).view(np.uint16)
        total += int(_ones()[halves].sum(dtype=np.int64))
    return total


@cache
def _ones() -> npt.NDArray[np.uint8]:
    """How many bits are set in each number of 16 bits; NumPy itself can tell only from 2.0 on."""
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    return np.unpackbits(numbers, axis=1).sum(axis=1, dtype=np.uint8)
