"""Tab-separated files without a header: every line is a message, one column its key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import SPARK_SEED, U64, hash_bytes
from skewless.streams.api import Chunk, Stream
from skewless.streams.files import text_blocks

_SPARK_SEED = np.uint64(SPARK_SEED)
_TAB, _NEWLINE, _RETURN = np.uint8(9), np.uint8(10), np.uint8(13)


@inlined
def line_end(text: npt.NDArray[np.uint8], start: int) -> tuple[int, int]:
    """Where the line's content ends (before \\n or \\r\\n), and where the next line starts."""
    at = start
    while at < text.size and text[at] != _NEWLINE:
        at += 1
    stop = at - 1 if at > start and text[at - 1] == _RETURN else at
    return stop, at + 1


@inlined
def field_of(text: npt.NDArray[np.uint8], start: int, stop: int, column: int) -> tuple[int, int]:
    """Where that column of the line text[start:stop] starts and ends; (-1, -1): it has none."""
    number, begin = 1, start
    for at in range(start, stop):
        if text[at] == _TAB:
            if number == column:
                return begin, at
            number += 1
            begin = at + 1
    return (begin, stop) if number == column else (-1, -1)


@compiled
def _hash_columns(
    text: npt.NDArray[np.uint8], column: int, source_column: int, keys: U64, sources: U64
) -> tuple[int, int]:
    """Lines read, and the column that the last of them lacks (0: none); source_column may be 0."""
    lines, at = 0, 0
    while at < text.size:
        stop, after = line_end(text, at)
        begin, end = field_of(text, at, stop, column)
        if begin < 0:
            return lines + 1, column
        keys[lines] = hash_bytes(text, begin, end, _SPARK_SEED)
        if source_column:
            begin, end = field_of(text, at, stop, source_column)
            if begin < 0:
                return lines + 1, source_column
            sources[lines] = hash_bytes(text, begin, end, _SPARK_SEED)
        lines += 1
        at = after
    return lines, 0


def refuse_short_line(path: str, line: int, column: int) -> NoReturn:
    """Refuse a line with fewer columns than were asked for."""
    raise SkewlessError(
        f"Line {line} of '{path}' has no column {column}: columns are separated by tabs and "
        "counted from 1."
    )


def check_start(stream: Stream, path: str, column: int, ends: bytes = b"\n") -> None:
    """Refuse a text that cannot be read, or whose first line lacks the column (0: any will do)."""
    start = next(text_blocks(path, ends), None)
    if start is None:
        stream.refuse_empty()
    if start.partition(b"\n")[0].count(b"\t") + 1 < column:
        refuse_short_line(path, 1, column)


@dataclass(frozen=True)
class TabSeparated(Stream):
    """A column of a tab-separated file, plain or gzip, without header or quoting.

    Keys are strings; an empty field is the empty string. Columns are counted from 1.

    path: the file.
    column: the column that is the key.
    """

    path: str
    column: int

    name: ClassVar[str] = "tsv"

    def __post_init__(self) -> None:
        if self.column < 1:
            raise SkewlessError(f"tsv:column counts columns from 1, so {self.column} is not one.")

    def check(self) -> None:
        """Refuse a file that cannot be read, or whose first line lacks the column."""
        check_start(self, self.path, self.column)

    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """One chunk per block of the file."""
        source = _column_number(source_column)
        lines_before = 0
        for block in text_blocks(self.path):
            text: Any = np.frombuffer(block, np.uint8)
            most = block.count(b"\n") + 1
            keys, sources = np.empty(most, np.uint64), np.empty(most if source else 0, np.uint64)
            lines, lacking = _hash_columns(text, self.column, source, keys, sources)
            lines_before += lines
            if lacking:
                refuse_short_line(self.path, lines_before, lacking)
            yield Chunk(keys[:lines], sources[:lines] if source else None)


def _column_number(source_column: str | None) -> int:
    if source_column is None:
        return 0
    if not source_column.isdecimal() or not 1 <= int(source_column) < 1 << 31:
        raise SkewlessError(
            f"The source column of a tsv is a number counted from 1, not '{source_column}'."
        )
    return int(source_column)
