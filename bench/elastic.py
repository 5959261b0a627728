"""Workers that join and leave: which keys move, and how long queues take to recover. No timing.

    python -m bench.elastic [--z 1.2] [--load 0.7] [--messages 400000]

Ten equal workers, three sources; two more join, and later two leave. "Calm" is the share of keys
that came to a new worker around a moment at which nothing changed: a scheme that spreads keys does
that all the time.
"""

from __future__ import annotations

import argparse

from skewless.schemes import scheme_of
from skewless.simulate.queue.elastic import MoveRecorder
from skewless.simulate.queue.run import Cluster, QueueRun
from skewless.streams import stream_of

WORKERS, MORE, SOURCES = 10, 2, 3
SCHEMES = ("key", "bounded-hash", "consistent:inner=key", "consistent", "graded", "partial", "porc",
           "d-choices", "w-choices", "dynamic", "distribution-aware:learn=20000", "potc", "shuffle",
           "proactive")  # fmt: skip


def run(stream, scheme, cluster, calm=None):
    made = QueueRun(stream, scheme_of(scheme), cluster, 0, True)
    if calm is not None:
        made._moves = MoveRecorder([(calm, WORKERS)])
    for chunk in stream.chunks(0):
        made.add(chunk.keys)
    return made.result()


def words(recovery):
    return "not over" if recovery is None else f"{recovery:,.0f}"


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.elastic")
    parser.add_argument("--z", type=float, default=1.2)
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--messages", type=int, default=400_000)
    asked = parser.parse_args()
    stream = stream_of(f"zipf:z={asked.z},keys=10000,messages={asked.messages}")
    joined, left = asked.messages * 3 // 8, asked.messages * 7 // 10
    changes = [(joined, [1.0] * (WORKERS + MORE)), (left, [1.0] * WORKERS)]
    print("| scheme | calm | keys moved: 2 join | recovery | 2 leave | recovery | p99 latency | "
          "copies |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for scheme in SCHEMES:
        still = run(stream, scheme, Cluster(WORKERS, asked.load, SOURCES), joined)
        seen = run(stream, scheme, Cluster(WORKERS, asked.load, SOURCES, changes=changes))
        joining, leaving = seen.changes
        cells = [
            f"`{scheme}`",
            f"{still.changes[0]['keys_moved']:.0%}",
            *(f"{joining['keys_moved']:.0%}", words(joining["recovery"])),
            *(f"{leaving['keys_moved']:.0%}", words(leaving["recovery"])),
            *(f"{seen.p99_latency:,.1f}", f"{seen.balance.replication:.2f}"),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
