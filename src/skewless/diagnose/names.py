"""The names of keys: streams carry 64-bit identities, and people want to read the key itself.

The hash of a long is a bijection, so the long is computed back. Text is not: a file is read again,
until all the names that are wanted were seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from skewless.hashing import SPARK_SEED, identities, identity
from skewless.streams import Stream
from skewless.streams.countries import COUNTRIES, Countries
from skewless.streams.csv import CommaSeparated
from skewless.streams.files import text_blocks
from skewless.streams.parquet import Parquet
from skewless.streams.synthetic import Synthetic
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words

LONGEST = 200  # characters of a key that are shown

_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def names_of(stream: Stream, wanted: Iterable[int]) -> dict[int, str]:
    """The name of each of these identities of a stream."""
    left = set(wanted)
    if isinstance(stream, Countries):
        return {i: name for name in COUNTRIES if (i := identity(name)) in left}
    if isinstance(stream, Synthetic):
        return {i: str(unhash_long(i)) for i in left}
    found: dict[int, str] = {}
    for values in _values(stream):
        for number, value in zip(identities(values).tolist(), values, strict=True):
            if number in left:
                left.discard(number)
                found[number] = shown(value.as_py())
        if not left:
            break
    return found


def shown(value: object) -> str:
    """A key as text: bytes in hexadecimal, a null by its name, and no more than people read."""
    if value is None:
        return "null"
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _values(stream: Stream) -> Iterator[pa.Array]:
    """The distinct keys of a file, block by block."""
    if isinstance(stream, Parquet | CommaSeparated):
        for column in stream.values():
            yield column.unique()
    elif isinstance(stream, Words):
        for block in text_blocks(stream.path, b"\n" if stream.column else b" \t\n\r\v\f"):
            lines = _fields(block, stream.column) if stream.column else [block]
            yield _texts({word for line in lines for word in line.split()})
    elif isinstance(stream, TabSeparated):
        for block in text_blocks(stream.path):
            yield _texts(set(_fields(block, stream.column)))


def _fields(block: bytes, column: int) -> Iterator[bytes]:
    """That tab-separated column, counted from 1, of each line."""
    lines = block.removesuffix(b"\n").split(b"\n")
    return (line.removesuffix(b"\r").split(b"\t", column)[column - 1] for line in lines)


def _texts(words: set[bytes]) -> pa.Array:
    return pa.array([word.decode() for word in words], pa.string())


def unhash_long(hashed: int, seed: int = SPARK_SEED) -> int:
    """The long whose xxhash64 this is: every step of the hash has an inverse."""
    h = _unshift(hashed, 32)
    h = _unshift(h * pow(_P3, -1, 1 << 64) & _MASK, 29)
    h = _unshift(h * pow(_P2, -1, 1 << 64) & _MASK, 33)
    h = _rotate_back((h - _P4) * pow(_P1, -1, 1 << 64) & _MASK, 27)
    h ^= (seed + _P5 + 8) & _MASK
    h = _rotate_back(h * pow(_P1, -1, 1 << 64) & _MASK, 31)
    x = h * pow(_P2, -1, 1 << 64) & _MASK
    return x - (1 << 64) if x >> 63 else x


def _unshift(x: int, bits: int) -> int:
    """Undo x ^= x >> bits."""
    result = x
    while x := x >> bits:
        result ^= x
    return result


def _rotate_back(x: int, bits: int) -> int:
    return (x >> bits | x << (64 - bits)) & _MASK
