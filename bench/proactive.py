"""Messages per second of `proactive` and `full-knowledge`, routing and in queues with feedback.

Routing is measured once costs are known, in RUN: before, it is round robin. Beside them, the same
greedy choice by looking at every worker, which is what the tournament saves. Routing is timed by
the thread's own time, queues by the clock.
"""

import time
from functools import partial

import numpy as np
from numba import njit

from skewless.schemes import Feedback, scheme_of
from skewless.schemes.proactive.scheme import ProactiveReport
from skewless.simulate.queue.costs import costs_of
from skewless.simulate.queue.run import Cluster, queue
from skewless.sketch.count_min import CountMin, add_all
from skewless.streams import stream_of

MESSAGES = 2_000_000
STREAM = f"zipf:z=1.0,keys=4096,messages={MESSAGES}"
SPECS = ("proactive", "proactive:backlog=true", "full-knowledge")


@njit(cache=True)
def scan_all(weights, ends, out):
    """Greedy without a tournament."""
    for i in range(weights.size):
        worker, lowest = 0, ends[0]
        for w in range(1, ends.size):
            if ends[w] < lowest:
                worker, lowest = w, ends[w]
        ends[worker] = lowest + weights[i]
        out[i] = worker


def best_speed(run) -> float:
    """Messages a second in the best of four runs after one that compiles."""
    took_s = []
    for _ in range(5):
        start_s = time.thread_time()
        run()
        took_s.append(time.thread_time() - start_s)
    return MESSAGES / min(took_s[1:])


def known_plan(scheme, plan, keys, costs):
    """The plan of a scheme that knows the costs of these keys, if it wants to."""
    if not hasattr(plan, "known"):
        return plan
    rows, columns, _ = plan.known.shape
    matrices = []
    for weights in (np.ones(keys.size), costs):
        sketch = CountMin(np.zeros((rows, columns)), plan.hashes, np.zeros(1))
        add_all(sketch, keys, weights)
        matrices.append(sketch.counts)
    report = ProactiveReport(np.stack(matrices, axis=-1))
    return scheme.replan(plan, report, Feedback.none(int(plan.workers[0])))


def main() -> None:
    keys = np.concatenate([chunk.keys for chunk in stream_of(STREAM).chunks(0)])
    costs = costs_of("evenly").of(keys, 0, 0)
    times = np.arange(keys.size, dtype=np.float64)
    out = np.empty(keys.size, np.int32)
    print("million messages a second")
    for workers in (5, 50, 500):
        scan = best_speed(lambda w=workers: scan_all(costs, np.zeros(w), out))
        print(f"  route  looking at all           W = {workers:<4} {scan / 1e6:6.1f}")
        for spec in SPECS:
            scheme = scheme_of(spec)
            plan = known_plan(scheme, scheme.plan(workers, 0), keys, costs)
            tally = scheme.tally(plan, 0)
            speed = best_speed(partial(scheme.route, plan, tally, keys, costs, times, out))
            print(f"  route  {spec:<24} W = {workers:<4} {speed / 1e6:6.1f}")
    for workers in (5, 50):
        cluster = Cluster(workers, 1.0, costs="evenly", delay=1.0)
        for spec in SPECS:
            runs = [queue(STREAM, spec, cluster, replication=False) for _ in range(3)]
            speed = max(run.balance.messages_per_second for run in runs)
            print(f"  queue  {spec:<24} W = {workers:<4} {speed / 1e6:6.1f}")


if __name__ == "__main__":
    main()
