"""Costs by key from 1 to 100, workers of speeds 1 and 3, and drift of both: who stays even.

    python bench/graded_costs.py [--messages 1e6] [--workers 50]

Work ÷ speed is a worker's busy time; what is shown is its max/mean over all workers, and copies per
key. `graded` knows what a message costs when it is routed. When speeds change it is told by a new
plan, as between two batches on Spark; `consistent` and `proactive` hear of it from the workers.
W-Choices knows of neither.
"""

import argparse
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from rich.console import Console

from skewless.report.tables import table
from skewless.schemes import Feedback, scheme_of
from skewless.simulate.queue.costs import Costs
from skewless.simulate.queue.run import Cluster, queue
from skewless.simulate.replication import PairCounter
from skewless.streams import stream_of

SCHEMES = ("graded", "w-choices", "consistent", "proactive")
MOST = 100
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class ByKey(Costs):
    """1 to 100 by a hash of the key, picked again every `period` messages if that is not 0."""

    name: ClassVar[str] = "by-key"
    period: int = 0

    def of(self, keys, first, seed):
        epochs = (first + np.arange(keys.size)) // self.period if self.period else np.zeros(1, int)
        mixed = (keys ^ (epochs.astype(np.uint64) << np.uint64(40))) * np.uint64(_GOLDEN)
        return 1.0 + ((mixed >> np.uint64(32)) % np.uint64(MOST)).astype(np.float64)

    def average(self, stream, seed):
        work, first = 0.0, 0
        for chunk in stream.chunks(seed):
            work += float(self.of(chunk.keys, first, seed).sum())
            first += chunk.keys.size
        return work / first


def told(stream, costs, workers, stages, seed=0):
    """`graded` on a stream whose second half finds other speeds, which the next plan knows."""
    keys = np.concatenate([chunk.keys for chunk in stream_of(stream).chunks(seed)])
    weights = costs.of(keys, 0, seed)
    scheme = scheme_of("graded")
    counter = PairCounter(workers)
    busy, start, done = np.zeros(workers), np.zeros(workers), 0
    for speeds in stages:
        part = slice(done, done + keys.size // len(stages))
        plan: Any = scheme.plan(workers, seed, speeds)
        plan = plan._replace(start=start)
        tally, out = scheme.tally(plan, 0), np.empty(keys[part].size, np.int32)
        times = np.arange(keys[part].size, dtype=np.float64)
        scheme.route(plan, tally, keys[part], weights[part], times, out)
        start = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(workers)).start
        busy += np.bincount(out, weights[part], workers) / speeds
        counter.add(keys[part], out)
        done = part.stop
    counted = counter.count()
    return busy, counted.pairs / counted.keys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=float, default=1e6)
    parser.add_argument("--workers", type=int, default=50)
    options = parser.parse_args()
    workers, messages = options.workers, int(options.messages)
    speeds = np.where(np.arange(workers) % 2, 3.0, 1.0)
    streams = {
        "Zipf 1.2": f"zipf:z=1.2,keys=20000,messages={messages}",
        "drift": f"drift:z=1.2,keys=20000,messages={messages},period={messages // 10}",
    }
    rows = []
    for name, stream in streams.items():
        for costs in (ByKey(), ByKey(messages // 5)):
            for swaps in (False, True):
                changes = [(messages // 2, (4 - speeds).tolist())] if swaps else []
                cluster = Cluster(
                    workers, 0.9, capacities=speeds.tolist(), costs=costs, changes=changes
                )
                row = {
                    "stream": name,
                    "costs": "change" if costs.period else "fixed",
                    "speeds": "swap" if swaps else "fixed",
                }
                for scheme in SCHEMES:
                    if scheme == "graded" and swaps:
                        busy, copies = told(stream, costs, workers, (speeds, 4 - speeds))
                    else:
                        result = queue(stream, scheme, cluster)
                        busy, copies = np.array(result.utilisation), result.balance.replication
                    row[scheme] = f"{busy.max() / busy.mean():.3f}, {copies:.2f}"
                rows.append(row)
    title = f"max/mean of work ÷ speed, copies per key; {workers} workers"
    Console(width=110).print(table(title, rows))


if __name__ == "__main__":
    main()
