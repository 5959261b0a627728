"""The whole balance simulation: speed on keys in memory, linearity, and the paper's largest size.

python bench/simulate.py            speed and linearity, in a minute
python bench/simulate.py --huge     1.2 billion messages over 31 million keys, with peak memory
"""

import argparse
import resource
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.console import Console

from skewless.report.progress import messages_bar
from skewless.report.tables import table
from skewless.simulate.balance import balance
from skewless.streams import Chunk, Stream, stream_of


@dataclass(frozen=True, eq=False)
class InMemory(Stream):
    """Keys that were drawn before the clock started."""

    chunks_held: tuple[np.ndarray, ...]
    name: ClassVar[str] = "memory"

    def produce(self, seed, source_column):
        for keys in self.chunks_held:
            yield Chunk(keys, None)

    @property
    def spec(self):
        return self.name


def seconds(stream, scheme, workers):
    best = float("inf")
    for _ in range(3):
        start_s = time.perf_counter()
        balance(stream, scheme, workers, sources=5)
        best = min(best, time.perf_counter() - start_s)
    return best


def speed(console):
    rows = []
    for messages, keys in ((1e6, 1e4), (1e7, 1e4), (1e7, 1e5), (1e7, 1e6)):
        drawn = stream_of(f"zipf:z=1.0,keys={keys:.0f},messages={messages:.0f}").chunks()
        held = InMemory(tuple(chunk.keys for chunk in drawn))
        for scheme in ("key", "partial", "shuffle"):
            rate = messages / seconds(held, scheme, 50)
            rows.append(
                {
                    "messages": int(messages),
                    "keys": int(keys),
                    "scheme": scheme,
                    "million messages/s": round(rate / 1e6, 1),
                }
            )
    console.print(table("simulate with replication and checkpoints, W = 50, 5 sources", rows))


def huge(console):
    stream = stream_of("zipf:z=0.9,keys=31000000,messages=1200000000")
    start_s = time.perf_counter()
    with messages_bar(console, "routing", stream.length()) as progress:
        result = balance(stream, "partial", 50, sources=5, progress=progress)
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {
        "messages": result.messages,
        "keys": result.keys,
        "imbalance": result.imbalance,
        "replication": round(result.replication, 4),
        "seconds": round(time.perf_counter() - start_s),
        "peak GiB": round(peak_gib, 2),
    }
    console.print(table("the paper's Twitter size, partial, W = 50, 5 sources", [row]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--huge", action="store_true")
    options = parser.parse_args()
    console = Console()
    (huge if options.huge else speed)(console)


if __name__ == "__main__":
    main()
