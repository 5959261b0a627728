"""Messages per second of the queue simulator with feedback, and of `porc`; a few seconds' run."""

import time

import numpy as np

from skewless.schemes import scheme_of
from skewless.simulate.queue.run import Cluster, queue
from skewless.streams import stream_of

WORKERS, MESSAGES = 50, 2_000_000
STREAM = f"zipf:z=1.0,keys=26000,messages={MESSAGES}"


def queue_speed(spec: str, sources: int) -> float:
    """The best of three runs after one that compiles."""
    cluster = Cluster(WORKERS, 0.8, sources, delay=1.0)
    runs = [queue(STREAM, spec, cluster, replication=False) for _ in range(4)]
    return max(run.balance.messages_per_second for run in runs[1:])


def route_speed(spec: str, z: float) -> float:
    """The best of three runs after one that compiles."""
    scheme = scheme_of(spec)
    plan = scheme.plan(WORKERS, 0)
    stream = stream_of(f"zipf:z={z},keys=10000,messages={MESSAGES}")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(0)])
    ones, out = np.broadcast_to(np.ones(1), keys.size), np.empty(keys.size, np.int32)
    times = np.arange(keys.size, dtype=np.float64)
    took_s = []
    for _ in range(4):
        tally = scheme.tally(plan, 0)
        start_s = time.perf_counter()
        scheme.route(plan, tally, keys, ones, times, out)
        took_s.append(time.perf_counter() - start_s)
    return keys.size / min(took_s[1:])


def main() -> None:
    print(f"million messages a second, W = {WORKERS}")
    for spec in ("key", "porc", "consistent", "consistent:settle=true"):
        for sources in (1, 5):
            speed = queue_speed(spec, sources) / 1e6
            print(f"  queue  {spec:<24} {sources} sources  {speed:6.1f}")
    for spec in ("porc", "bounded-hash", "potc-message", "consistent", "partial"):
        for z in (1.0, 1.5):
            print(f"  route  {spec:<24} z = {z}      {route_speed(spec, z) / 1e6:6.1f}")


if __name__ == "__main__":
    main()
