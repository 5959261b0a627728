"""What a stream is: parameters that produce chunks of key identities, never the whole at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from skewless.errors import SkewlessError
from skewless.hashing import U64, unhash_longs
from skewless.spec import Described

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_MESSAGES = 1 << 18


class Chunk(NamedTuple):
    """Consecutive messages of a stream."""

    keys: U64  # [n] identities
    sources: U64 | None  # [n] identities of the source column, if one was asked for


class Stream(Described, ABC):
    """Base of all streams: a frozen dataclass of parameters that implements `produce`."""

    def chunks(self, seed: int = 0, source_column: str | None = None) -> Iterator[Chunk]:
        """The messages in order, in chunks of 1 to CHUNK_MESSAGES; an empty stream is an error.

        seed: draws another stream of the same kind; files are what they are and ignore it.
        source_column: the column of a file whose identities become `Chunk.sources`.
        """
        empty = True
        for chunk in self.produce(seed, source_column):
            for first in range(0, chunk.keys.size, CHUNK_MESSAGES):
                span = slice(first, first + CHUNK_MESSAGES)
                empty = False
                yield Chunk(
                    chunk.keys[span], None if chunk.sources is None else chunk.sources[span]
                )
        if empty:
            self.refuse_empty()

    def check(self) -> None:
        """Refuse what shows without reading it all: no such file, or a column that it lacks."""

    @abstractmethod
    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """The messages in order, in chunks of any size."""

    def keys_of(self, identities: U64) -> pa.Array:
        """Keys that have these identities: numbers, unless a stream draws names."""
        import pyarrow as pa

        return pa.array(unhash_longs(identities))

    def length(self) -> int | None:
        """The number of messages, or None where only reading to the end would tell."""
        return None

    def refuse_empty(self) -> NoReturn:
        """Refuse a stream without messages."""
        raise SkewlessError(f"The stream '{self.spec}' is empty: give one with at least 1 message.")

    def refuse_sources(self, source_column: str | None) -> None:
        """Refuse a source column where there are no columns."""
        if source_column is not None:
            raise SkewlessError(
                f"The stream '{self.name}' has no source column '{source_column}': leave it out, "
                "or read a tsv, csv or parquet file."
            )
