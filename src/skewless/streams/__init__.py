"""The registry of streams: one file per stream, one line here."""

from __future__ import annotations

from skewless.spec import build
from skewless.streams.api import Chunk, Stream
from skewless.streams.countries import Countries
from skewless.streams.csv import CommaSeparated
from skewless.streams.drift import Drift
from skewless.streams.lognormal import LogNormal
from skewless.streams.parquet import Parquet
from skewless.streams.spike import Spike
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words
from skewless.streams.zipf import Zipf

_ALL: tuple[type[Stream], ...] = (
    Zipf,
    LogNormal,
    Countries,
    Drift,
    Spike,
    Words,
    TabSeparated,
    CommaSeparated,
    Parquet,
)
STREAMS: dict[str, type[Stream]] = {stream.name: stream for stream in _ALL}


def stream_of(stream: Stream | str) -> Stream:
    """A stream from its object or its spec string, such as `zipf:z=1,keys=1e4,messages=1e6`."""
    return stream if isinstance(stream, Stream) else build(STREAMS, stream, "stream")


__all__ = ["STREAMS", "Chunk", "Stream", "stream_of"]
