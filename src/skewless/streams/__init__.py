"""The registry of streams: one file per stream, one line here."""

from __future__ import annotations

from skewless.spec import Registry, build
from skewless.streams.api import Chunk, Stream

STREAMS: Registry[Stream] = Registry(
    "skewless.streams",
    {
        "zipf": "zipf:Zipf",
        "lognormal": "lognormal:LogNormal",
        "countries": "countries:Countries",
        "drift": "drift:Drift",
        "spike": "spike:Spike",
        "words": "words:Words",
        "tsv": "tsv:TabSeparated",
        "csv": "csv:CommaSeparated",
        "parquet": "parquet:Parquet",
    },
)


def stream_of(stream: Stream | str) -> Stream:
    """A stream from its object or its spec string, such as `zipf:z=1,keys=1e4,messages=1e6`."""
    return stream if isinstance(stream, Stream) else build(STREAMS, stream, "stream")


__all__ = ["STREAMS", "Chunk", "Stream", "stream_of"]
