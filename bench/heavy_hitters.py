"""Schemes that know the hot keys, on one core: messages per second and what they keep in memory.

    python bench/heavy_hitters.py [--messages 4e6] [--workers 50]

Bars at W = 50, in million messages a second: SpaceSaving (with its number of counters) ≥ 30,
d-choices and w-choices ≥ 20, distribution-aware, deployed, ≥ 100. The limit only reads the keys and
writes the output; compare within one run. Memory is that of a source, and does not grow with the
number of keys.
"""

import argparse

import numpy as np
from rich.console import Console

from route import best_seconds, read_and_write, route_seconds
from skewless.report.tables import table
from skewless.schemes import scheme_of
from skewless.sketch.space_saving import add_all, capacity_for, space_saving
from skewless.streams import stream_of

SCHEMES = {
    "d-choices": "d-choices",
    "w-choices": "w-choices",
    "aware, Θ 0.1": "distribution-aware",
    "aware, Θ 0.004": "distribution-aware:theta=0.004",
}


def kilobytes(state):
    if isinstance(state, tuple):
        return sum(kilobytes(part) for part in state)
    return state.nbytes / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=float, default=4e6)
    parser.add_argument("--workers", type=int, default=50)
    options = parser.parse_args()
    messages, workers = int(options.messages), options.workers
    rows = []
    for z, key_count in ((1.0, 10_000), (1.5, 10_000), (1.0, 1_000_000)):
        stream = stream_of(f"zipf:z={z},keys={key_count},messages={messages}")
        keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
        out, ones = np.empty(keys.size, np.int32), np.broadcast_to(np.ones(1), keys.size)
        limit_s = best_seconds(lambda keys=keys, out=out: read_and_write(keys, out))

        def row(what, seconds, memory, z=z, key_count=key_count, limit_s=limit_s):
            return {
                "z": z,
                "keys": f"{key_count:,}",
                "what": what,
                "million/s": round(messages / seconds / 1e6, 1),
                "of the limit": round(limit_s / seconds, 3),
                "kB a source": round(memory, 1),
            }

        for counters in (20, capacity_for(1 / (20 * workers))):
            summary = space_saving(counters)
            seconds = best_seconds(lambda s=summary, keys=keys, w=ones: add_all(s, keys, w))
            rows.append(row(f"SpaceSaving {counters}", seconds, kilobytes(summary)))
        for name, spec in SCHEMES.items():
            scheme = scheme_of(spec)
            memory = kilobytes(scheme.tally(scheme.plan(workers, 0), 0))
            rows.append(row(name, route_seconds(scheme, workers, keys), memory))
    Console().print(table(f"one core, W = {workers}, {messages:,} messages", rows))


if __name__ == "__main__":
    main()
