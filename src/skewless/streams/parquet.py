"""Parquet files: every row is a message, one column its key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from skewless.errors import SkewlessError, unknown
from skewless.hashing import identities
from skewless.streams.api import CHUNK_MESSAGES, Chunk, Stream
from skewless.streams.files import explained

_BATCH_BYTES = 256 << 20


@dataclass(frozen=True)
class Parquet(Stream):
    """A column of Parquet files; keys keep the column's type, so int 1 and long 1 differ.

    path: the file, or a folder of them as Spark writes it, read in the order of their names.
    column: the name of the column that is the key; a null in it is an error.
    """

    path: str
    column: str

    name: ClassVar[str] = "parquet"

    def check(self) -> None:
        """Refuse what is no Parquet, or lacks the column.

        Spark takes names in any case, and knows those of folders such as day=1 too.
        """
        with self._explained():
            first = files_of(self.path)[0]
            names = list(pq.read_schema(first).names)
        names += [part.partition("=")[0] for part in first.parts if "=" in part]
        if self.column.lower() not in map(str.lower, names):
            raise unknown(f"column of '{self.path}' called", self.column, names)

    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """One chunk per batch of rows."""
        wanted = [self.column] if source_column is None else [self.column, source_column]
        rows_before = 0
        for batch in self._batches(wanted):
            columns = [
                identities(self._without_nulls(batch.column(c), c, rows_before)) for c in wanted
            ]
            rows_before += len(batch)
            yield Chunk(columns[0], None if source_column is None else columns[1])

    def values(self) -> Iterator[pa.Array]:
        """The keys themselves, nulls among them, one array per batch of rows."""
        return (batch.column(0) for batch in self._batches([self.column]))

    def _batches(self, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        with self._explained():
            for path in files_of(self.path):
                yield from self._read(path, wanted)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(self.path):
                yield
        except (pa.ArrowException, MemoryError) as error:
            reason = (str(error) or "it is too large").splitlines()[0].rstrip(".")
            raise SkewlessError(
                f"The file '{self.path}' is not a readable Parquet file: {reason}."
            ) from error

    def _read(self, path: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            for column in wanted:
                if column not in file.schema_arrow.names:
                    raise unknown(
                        f"column of '{self.path}' called", column, file.schema_arrow.names
                    )
            columns = list(dict.fromkeys(wanted))
            yield from file.iter_batches(_rows_at_once(file.metadata), columns=columns)

    def _without_nulls(self, array: Any, column: str, rows_before: int) -> Any:
        if array.null_count:
            row = rows_before + array.is_null().index(True).as_py() + 1
            raise SkewlessError(
                f"Row {row} of '{self.path}' has a null in column '{column}': a message needs a "
                "key, so drop or fill the nulls first."
            )
        return array


def _rows_at_once(facts: Any) -> int:
    """So many that a batch of wide rows stays small; rows of usual width come by the chunk."""
    groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
    widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    return max(1, min(CHUNK_MESSAGES, _BATCH_BYTES // max(widest, 1)))


def files_of(path: str) -> list[Path]:
    """The file, or those of a folder but for Spark's own notes in it."""
    place = Path(os.path.expanduser(path))
    if not place.is_dir():
        return [place]
    found = sorted(
        file
        for file in place.rglob("*.parquet")
        if not any(part[0] in "._" for part in file.relative_to(place).parts)
    )
    if not found:
        raise SkewlessError(f"The folder '{path}' holds no Parquet file: check the path.")
    return found
