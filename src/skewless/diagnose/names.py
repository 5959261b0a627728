"""The names of keys: streams carry 64-bit identities, and people want to read the key itself.

A synthetic stream knows its keys by their identities. Text must be looked for: a file is read
again, until all the names that are wanted were seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from skewless.hashing import identities
from skewless.streams import Stream
from skewless.streams.csv import CommaSeparated
from skewless.streams.files import text_blocks
from skewless.streams.parquet import Parquet
from skewless.streams.synthetic import Synthetic
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words

LONGEST = 200  # characters of a key that are shown


def names_of(stream: Stream, wanted: Iterable[int]) -> dict[int, str]:
    """The name of each of these identities of a stream."""
    left = set(wanted)
    if isinstance(stream, Synthetic):
        listed = np.array(sorted(left), np.uint64)
        keys = stream.keys_of(listed).to_pylist()
        return {number: shown(key) for number, key in zip(listed.tolist(), keys, strict=True)}
    found: dict[int, str] = {}
    for values in _values(stream):
        for number, value in zip(identities(values).tolist(), values, strict=True):
            if number in left:
                left.discard(number)
                found[number] = shown(_python_value(value))
        if not left:
            break
    return found


def shown(value: object) -> str:
    """A key as text: bytes in hexadecimal, a null by its name, and no more than people read."""
    if value is None:
        return "null"
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _python_value(value: pa.Scalar) -> object:
    """The value; text that is not UTF-8 as far as it is, and times that Python has not as text."""
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return value.as_buffer().to_pybytes().decode(errors="replace")
    except (ValueError, OverflowError):
        return str(value)


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
