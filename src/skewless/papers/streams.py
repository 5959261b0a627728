"""The streams that stand in for the papers' data sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from skewless.errors import SkewlessError
from skewless.results import Setting
from skewless.streams import Chunk, Stream, stream_of
from skewless.streams.zipf import Zipf

_FILES = {
    "TW": ("congress_words.tsv.gz", "words:path={},column=2"),
    "WP": ("kjv_words.txt.gz", "words:path={}"),
    "CT": ("stocknet_cashtags.tsv.gz", "tsv:path={},column=2"),
    "SL2": ("slashdot0902.tsv.gz", "tsv:path={},column=2"),
    "HT": ("congress_hashtags.tsv.gz", "tsv:path={},column=2"),
}


def from_file(symbol: str, folder: Path) -> Stream:
    """The file of the data folder that is most like a data set of the papers."""
    file, spec = _FILES[symbol]
    path = folder / file
    if not path.is_file():
        raise SkewlessError(
            f"The data folder '{folder}' has no {file}: give the folder that holds it, "
            "or leave --data out to use synthetic streams."
        )
    return stream_of(spec.format(path))


def data_set(symbol: str, setting: Setting) -> Stream:
    """A data set of the papers: the file of `setting.data`, or a synthetic stream like it.

    Zipf streams with the p1 of the original: WP (9.3 %), TW (2.7 %) and CT, whose hot keys rotate.
    """
    if setting.data and symbol in _FILES:
        return from_file(symbol, setting.data)
    messages = 2_000_000 if setting.quick else 10_000_000
    return stream_of(
        {
            "WP": f"zipf:z=1.055,keys=2900000,messages={messages}",
            "TW": f"zipf:z=0.89,keys=3100000,messages={messages}",
            "CT": f"drift:z=0.8,keys=2900,messages={messages},period={messages // 10}",
            "LN1": f"lognormal:mu=1.789,sigma=2.366,messages={messages}",
            "LN2": f"lognormal:mu=2.245,sigma=1.133,messages={messages}",
        }[symbol]
    )


@dataclass(frozen=True)
class Graph(Stream):
    """Edges whose two ends are drawn from Zipf apart: the key is one end, the source the other."""

    keys: int
    messages: int
    z_in: float = 0.8
    z_out: float = 1.0

    name: ClassVar[str] = "graph"

    def length(self) -> int:
        """The number of edges."""
        return self.messages

    def produce(self, seed: int, source_column: str | None) -> Iterator[Chunk]:
        """Destinations as keys, origins as source keys if a source column is asked for."""
        into = Zipf(self.z_in, self.keys, self.messages).chunks(seed)
        out_of = Zipf(self.z_out, self.keys, self.messages).chunks(seed + 1)
        for destination, origin in zip(into, out_of, strict=True):
            yield Chunk(destination.keys, origin.keys if source_column else None)
