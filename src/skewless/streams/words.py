"""Words: every word of a text is a message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.errors import SkewlessError
from skewless.hashing import SPARK_SEED, U64, hash_bytes
from skewless.streams.api import Chunk, Stream
from skewless.streams.files import text_blocks
from skewless.streams.tsv import check_start, field_of, line_end, refuse_short_line

_BLANKS = b" \t\n\r\v\f"
_SPARK_SEED = np.uint64(SPARK_SEED)


@inlined
def _is_blank(byte: np.uint8) -> bool:
    return bool(byte == 32 or 9 <= byte <= 13)


@compiled
def _hash_words(text: npt.NDArray[np.uint8], start: int, stop: int, keys: U64, count: int) -> int:
    """Append the identities of the words in text[start:stop] to keys[:count]."""
    at = start
    while at < stop:
        if _is_blank(text[at]):
            at += 1
            continue
        begin = at
        while at < stop and not _is_blank(text[at]):
            at += 1
        keys[count] = hash_bytes(text, begin, at, _SPARK_SEED)
        count += 1
    return count


@compiled
def _hash_words_of_column(
    text: npt.NDArray[np.uint8], column: int, keys: U64
) -> tuple[int, int, int]:
    """Words, lines read, and whether the last of these lacks the column."""
    count, lines, at = 0, 0, 0
    while at < text.size:
        stop, after = line_end(text, at)
        begin, end = field_of(text, at, stop, column)
        lines += 1
        if begin < 0:
            return count, lines, 1
        count = _hash_words(text, begin, end, keys, count)
        at = after
    return count, lines, 0


@dataclass(frozen=True)
class Words(Stream):
    """The words of a text file, plain or gzip, separated by ASCII blanks; keys are strings.

    path: the file.
    column: only the words of this tab-separated column, counted from 1; 0: of the whole line.
    """

    path: str
    column: int = 0

    name: ClassVar[str] = "words"

    def __post_init__(self) -> None:
        if self.column < 0:
            raise SkewlessError(
                "words:column counts columns from 1, with 0 for the whole line, "
                f"so {self.column} is not one."
            )

    def check(self) -> None:
        """Refuse a file that cannot be read, or whose first line lacks the column."""
        check_start(self, self.path, self.column, self._ends())

    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """One chunk per block of the file."""
        self.refuse_sources(source_column)
        lines_before = 0
        for block in text_blocks(self.path, self._ends()):
            text: Any = np.frombuffer(block, np.uint8)
            keys = np.empty(text.size // 2 + 1, np.uint64)
            if self.column:
                count, lines, short = _hash_words_of_column(text, self.column, keys)
                lines_before += lines
                if short:
                    refuse_short_line(self.path, lines_before, self.column)
            else:
                count = _hash_words(text, 0, text.size, keys, 0)
            yield Chunk(keys[:count], None)

    def _ends(self) -> bytes:
        """Where blocks may be cut: of a column the lines must stay whole, else only the words."""
        return b"\n" if self.column else _BLANKS
