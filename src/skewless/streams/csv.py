"""Comma-separated files with a header: every row is a message, one column its key."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, ClassVar, NoReturn

import pyarrow as pa
import pyarrow.csv as arrow_csv

from skewless.errors import SkewlessError, unknown
from skewless.hashing import identities
from skewless.streams.api import Chunk, Stream
from skewless.streams.files import (
    BLOCK_BYTES,
    explained,
    open_bytes,
    refuse_encoding,
    refuse_line,
)


@dataclass(frozen=True)
class CommaSeparated(Stream):
    """A column of a CSV file, plain or gzip, with a header and optional double quotes.

    Keys are strings; an empty field is the empty string. An empty line is a row only where there
    is but one column.

    path: the file.
    column: the key's column, by its name in the header or by its number, counted from 1.
    delimiter: what separates columns, one character.
    """

    path: str
    column: str
    delimiter: str = ","

    name: ClassVar[str] = "csv"

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii():
            raise SkewlessError(f"csv:delimiter is one ASCII character, not '{self.delimiter}'.")

    def check(self) -> None:
        """Refuse a file that cannot be read, or whose header lacks the column."""
        with explained(self.path):
            self.place()

    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """One chunk per block of the file."""
        wanted = [self.column] if source_column is None else [self.column, source_column]
        for columns in self._columns(wanted):
            hashed = [identities(column) for column in columns]
            yield Chunk(hashed[0], hashed[1] if len(hashed) > 1 else None)

    def values(self) -> Iterator[pa.Array]:
        """The keys themselves, one array per block of the file."""
        return (columns[0] for columns in self._columns([self.column]))

    def _columns(self, wanted: list[str]) -> Iterator[list[pa.Array]]:
        with explained(self.path):
            header = self._header()
            if not header:
                return
            numbers = [self._number(column, header) for column in wanted]
            with open_bytes(self.path) as file:
                watched = _Watched(file)
                rows = 1  # the header
                try:
                    for batch in _read(watched, len(header), numbers, self.delimiter):
                        rows += batch.num_rows
                        yield [batch.column(number) for number in numbers]
                except pa.ArrowInvalid as error:
                    self._refuse(error)
                if watched.quotes % 2 and rows < watched.lines:
                    raise SkewlessError(
                        f"The file '{self.path}' has a quote that is never closed, so that the "
                        "rest of it reads as one field: close the quote, or remove it."
                    )

    def _header(self) -> list[str]:
        with open_bytes(self.path) as file:
            start = io.BufferedReader(_Start(file, self.path))
            text = io.TextIOWrapper(start, encoding="utf-8-sig", newline="")
            try:
                header = next(csv.reader(text, delimiter=self.delimiter), None)
            except csv.Error as error:
                self._refuse(error)
        if header == []:
            raise SkewlessError(
                f"The first line of '{self.path}' is empty: it must name the columns."
            )
        return header or []

    def place(self) -> int:
        """Which column of the file it is, counted from 1."""
        header = self._header()
        return int(self._number(self.column, header)) if header else self.refuse_empty()

    def _number(self, column: str, header: list[str]) -> str:
        """The column as the number, counted from 1, that names it below."""
        column = str(column)
        if column in header:
            return str(header.index(column) + 1)
        if column.isdecimal() and 1 <= int(column) <= len(header):
            return str(int(column))
        raise unknown(f"column of '{self.path}' called", column, header)

    def _refuse(self, error: Exception) -> NoReturn:
        message = str(error).splitlines()[0]
        if "UTF8" in message or "UTF-8" in message:
            refuse_encoding(self.path, error)
        raise SkewlessError(
            f"The file '{self.path}' is not well-formed CSV: {message.rstrip('.')}."
        ) from error


class _Start(io.RawIOBase):
    """The first bytes of a file; who asks for more than a block of them is refused."""

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file, self._path, self._left = file, path, BLOCK_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            refuse_line(self._path)
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


class _Watched(io.RawIOBase):
    """A file that counts the quotes and the ends of lines that are read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.quotes = self.lines = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.quotes += block.count(b'"')
        self.lines += block.count(b"\n")
        return block


def _read(
    file: object, columns: int, wanted: list[str], delimiter: str
) -> Iterator[pa.RecordBatch]:
    # Columns are named by their numbers, so names that occur twice in a header do no harm.
    names = [str(number + 1) for number in range(columns)]
    reader = arrow_csv.open_csv(
        file,
        read_options=arrow_csv.ReadOptions(
            block_size=BLOCK_BYTES, column_names=names, skip_rows_after_names=1, use_threads=False
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=columns > 1
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(dict.fromkeys(wanted)),
            column_types=dict.fromkeys(wanted, pa.string()),
            strings_can_be_null=False,
        ),
    )
    yield from reader
