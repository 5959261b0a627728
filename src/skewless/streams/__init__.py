"""The registry of streams: one file per stream, one line here."""

from __future__ import annotations

from skewless.errors import SkewlessError, brief
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
    if isinstance(stream, Stream):
        return stream
    if not isinstance(stream, str):
        raise SkewlessError(
            "A stream is one of skewless.streams or a text such as "
            f"'zipf:z=1,keys=1e4,messages=1e6', not {brief(stream)}."
        )
    return build(STREAMS, stream, "stream")


__all__ = ["STREAMS", "Chunk", "Stream", "stream_of"]
