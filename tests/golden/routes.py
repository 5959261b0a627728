"""Golden routes: where every scheme sends the messages of a tiny trace.

A change of routes on purpose: `python -m tests.golden.routes` writes routes.txt again, and the
changelog says that routes changed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import skewless
from skewless.schemes import SCHEMES, scheme_of
from skewless.schemes.api import hear_nothing
from skewless.schemes.check import walk
from skewless.simulate.sources import Estimate, Sources

HERE = Path(__file__).parent
WORKERS = 7  # one digit each
# Parameters so small that 600 messages leave learning, round robin and baby keys behind.
SMALL = {
    "consistent": "consistent:slot=30,virtual=4",
    "d-choices": "d-choices:refresh=50",
    "distribution-aware": "distribution-aware:learn=100,theta=0.05",
    "dynamic": "dynamic:rate=20,keys=40,cycle_s=1,old_cycle_s=3,warm_up_s=2",
    "graded": "graded:half_life=30",
    "graded-planned": "graded-planned:learn=150",
    "proactive": "proactive:window=8,tolerance=2,epsilon=0.5",
}


def name_of(spec):
    return spec.partition(":")[0]


def trace():
    """600 keys as numbers: one of them a third of all, and a long tail."""
    return np.array((HERE / "trace.txt").read_text().split(), np.uint64)


def routes():
    """Of every scheme its route from two sources, the one under the plan that follows from their
    reports, and the one of a source that hears signals.
    """
    keys = trace()
    for name in sorted(SCHEMES):
        spec = SMALL.get(name, name)
        scheme = scheme_of(spec)
        yield f"{spec} plain", digits(skewless.route(keys, spec, WORKERS, sources=2, seed=1))
        system = Sources(scheme, WORKERS, 2, 1, Estimate())
        system.route(keys)
        system.adopt(system.learned_plan())
        yield f"{spec} replanned", digits(system.route(keys))
        if scheme.hear is not hear_nothing:
            heard = walk(scheme, scheme.plan(WORKERS, 1), keys, WORKERS)
            yield f"{spec} hearing", digits(heard.workers)


def digits(workers):
    return "".join(map(str, workers.tolist()))


def recorded():
    """What routes.txt says."""
    lines = (HERE / "routes.txt").read_text().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines)


if __name__ == "__main__":
    text = "".join(f"{name} {route}\n" for name, route in routes())
    (HERE / "routes.txt").write_text(text)
