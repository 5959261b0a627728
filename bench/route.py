"""Messages per second and core of every scheme's router, beside a limit and a plain Python router.

    python bench/route.py [--schemes key,partial] [--messages 4e6]

The limit only reads the keys and writes the output. Ratios are to compare within one run: machines
and their neighbours differ. Seconds are the processor's, so that other processes count less.
"""

import argparse
import time

import numpy as np
from numba import njit
from rich.console import Console

from skewless.report.tables import table
from skewless.schemes import SCHEMES, Feedback, scheme_of
from skewless.spec import split_list
from skewless.streams import stream_of

ROUNDS = 5


@njit(cache=True)
def read_and_write(keys, out):
    for i in range(keys.size):
        out[i] = np.int32(keys[i] & np.uint64(63))


def plain_python_partial(keys, workers):
    """What one writes first: two hashes, a list of loads, a loop."""
    loads = [0] * workers
    out = []
    for key in keys:
        a, b = hash((key, 1)) % workers, hash((key, 2)) % workers
        worker = a if loads[a] <= loads[b] else b
        loads[worker] += 1
        out.append(worker)
    return out


def best_seconds(run):
    best = float("inf")
    for _ in range(ROUNDS):
        start_s = time.process_time()
        run()
        best = min(best, time.process_time() - start_s)
    return best


def route_seconds(scheme, workers, keys):
    plan = scheme.plan(workers, 0)
    weights = np.broadcast_to(np.ones(1), keys.size)
    times = np.arange(keys.size, dtype=np.float64)
    out = np.empty(keys.size, np.int32)
    if scheme.learns != "nothing":
        tally = scheme.reserve(scheme.tally(plan, 0), keys.size)
        scheme.route(plan, tally, keys, weights, times, out)
        plan = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(workers))
    tallies = [grown(scheme, plan, keys) for _ in range(ROUNDS)]
    return best_seconds(lambda: scheme.route(plan, tallies.pop(), keys, weights, times, out))


def grown(scheme, plan, keys):
    """A fresh tally with as much room as the stream will use."""
    tally = scheme.tally(plan, 0)
    for _ in range(2):
        tally = scheme.reserve(tally, min(keys.size, 1 << 16))
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--messages", type=float, default=4e6)
    options = parser.parse_args()
    messages = int(options.messages)
    console = Console()
    rows = []
    for z in (1.0, 1.5):
        stream = stream_of(f"zipf:z={z},keys=10000,messages={messages}")
        keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
        out = np.empty(keys.size, np.int32)
        limit = messages / best_seconds(lambda keys=keys, out=out: read_and_write(keys, out))
        few = keys[:200_000].tolist()
        python = len(few) / best_seconds(lambda few=few: plain_python_partial(few, 50))
        for name in split_list(options.schemes):
            for workers in (10, 50, 100, 1000):
                rate = messages / route_seconds(scheme_of(name), workers, keys)
                rows.append(
                    {
                        "z": z,
                        "scheme": name,
                        "workers": workers,
                        "million messages/s": round(rate / 1e6, 1),
                        "of the limit": round(rate / limit, 3),
                        "times plain Python": round(rate / python),
                    }
                )
        console.print(
            f"z = {z}: limit {limit / 1e6:,.0f}, plain Python {python / 1e6:.2f} million/s"
        )
    console.print(table(f"routers, one core, {messages:,} messages, 10,000 keys", rows))


if __name__ == "__main__":
    main()
