"""What planning costs: graded choices as a plan, against the same online and W-Choices.

The plan is learned from the first tenth of a stream, and all are judged by its second half: never
on what was learned from. "Replanned" goes on learning, plans again every fiftieth, and lets
messages count half after a twentieth.

What a plan can promise on a stream that does not change follows from sampling. A worker that is to
get the share q of the stream is planned from L messages, which show q with a standard deviation of
√(q/L); of the m messages that are judged it gets q with one of √(q/m), salts included, since each
message goes to it with probability q whatever the others did. The plan puts at most
(1 + target)/W of what it counted on a worker. So with q = (1 + target)/W, relative to the mean,

    max/mean − 1 ≤ target + z · √((1 + target) · W · (1/L + 1/m))

where z is the normal quantile of 1 − 0.001/W: all W workers stay below with probability 0.999. For
one per cent beside the target at W = 100, L must be in the millions. Where keys drift nothing is
promised; what is lost there is told in the notes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from skewless.papers.streams import from_file
from skewless.results import Line, Panel, Reproduction, Setting, at_most
from skewless.schemes import scheme_of
from skewless.schemes.api import U64
from skewless.simulate.replication import PairCounter
from skewless.simulate.sources import route
from skewless.streams import Stream, stream_of

SOURCES, TARGET = 5, 0.01
ONLINE, PLANNED, REPLANNED, W_CHOICES = "graded", "planned", "replanned", "w-choices"
STABLE = {"Zipf 1.0": 1.0, "Zipf 1.5": 1.5}
FILES = {"words": "TW", "hashtags": "HT", "cashtags": "CT", "slashdot": "SL2", "bible": "WP"}


class Judged(NamedTuple):
    """How one way came out."""

    uneven: float  # max/mean − 1 over the second half
    keys: int  # seen after the first tenth
    pairs: int  # (key, worker) pairs of these

    @property
    def replication(self) -> float:
        """Workers per key."""
        return self.pairs / self.keys


def planned(setting: Setting) -> Reproduction:
    """Balance and copies at W = 10, 50 and 100: on Zipf, and on real files or a synthetic drift."""
    counts = (10, 50) if setting.quick else (10, 50, 100)
    rows: list[dict[str, object]] = []
    checks, panels, notes = [], [], []
    for name, stream in _streams(setting).items():
        keys = np.concatenate([chunk.keys for chunk in stream.chunks(setting.seed)])
        seen: dict[int, Mapping[str, Judged]] = {}
        for workers in counts:
            found = {
                way: _judge(keys, spec, workers, setting.seed)
                for way, spec in _ways(keys.size).items()
            }
            seen[workers] = found
            bound = sampling_bound(workers, keys.size // 10, keys.size - keys.size // 2)
            rows += [
                {
                    "stream": name,
                    "workers": workers,
                    "way": way,
                    "uneven": judged.uneven,
                    "replication": judged.replication,
                    "bound_of_a_plan": bound if name in STABLE else "",
                }
                for way, judged in found.items()
            ]
            plan = found[PLANNED]
            if name in STABLE:
                claim = f"{name}, W = {workers}: max/mean − 1 of a plan within its sampling error"
                checks.append(at_most(claim, plan.uneven, bound))
            claim = f"{name}, W = {workers}: copies of keys beyond one each, under one plan"
            checks.append(at_most(claim, plan.pairs - plan.keys, workers - 1))
            setting.step(f"{name}, W = {workers}")
        panels.append(_panel(name, seen))
        notes.append(_note(name, seen))
    title = "Graded choices online and planned: what a plan costs"
    return Reproduction("graded-planned", title, rows, checks, panels, notes)


def sampling_bound(workers: int, learned: int, judged: int) -> float:
    """What max/mean − 1 of a plan exceeds once in a thousand times on a stable stream."""
    z = NormalDist().inv_cdf(1 - 0.001 / workers)
    return TARGET + z * math.sqrt((1 + TARGET) * workers * (1 / learned + 1 / judged))


def _streams(setting: Setting) -> dict[str, Stream]:
    messages = 400_000 if setting.quick else 10_000_000
    streams = {
        name: stream_of(f"zipf:z={z},keys=100000,messages={messages}") for name, z in STABLE.items()
    }
    if setting.data:
        return streams | {name: from_file(file, setting.data) for name, file in FILES.items()}
    drift = f"drift:z=1,keys=10000,messages={messages},period={messages // 10}"
    return streams | {"drift": stream_of(drift)}


def _ways(messages: int) -> dict[str, str]:
    once = f"graded-planned:target={TARGET},learn={messages // 10}"
    memory = messages / 20 / SOURCES
    return {
        ONLINE: f"graded:target={TARGET}",
        PLANNED: once,
        REPLANNED: f"{once},relearn={messages // 50},half_life={memory}",
        W_CHOICES: "w-choices",
    }


def _judge(keys: U64, spec: str, workers: int, seed: int) -> Judged:
    routed = route(keys, scheme_of(spec), workers, sources=SOURCES, seed=seed)
    loads = np.bincount(routed[keys.size // 2 :], minlength=workers)
    counter = PairCounter(workers)
    counter.add(keys[keys.size // 10 :], routed[keys.size // 10 :])
    counted = counter.count()
    return Judged(float(loads.max() / loads.mean() - 1), counted.keys, counted.pairs)


def _panel(name: str, seen: Mapping[int, Mapping[str, Judged]]) -> Panel:
    ways: Sequence[str] = [ONLINE, PLANNED, REPLANNED, W_CHOICES]
    lines = [Line(way, list(seen), [found[way].uneven for found in seen.values()]) for way in ways]
    return Panel(name, "workers", "max/mean − 1 over the second half", lines, log_y=True)


def _note(name: str, seen: Mapping[int, Mapping[str, Judged]]) -> str:
    told = [
        f"W = {workers}: "
        + ", ".join(f"{way} {j.uneven:.2%} ({j.replication:.3f})" for way, j in found.items())
        for workers, found in seen.items()
    ]
    return f"{name}, max/mean − 1 and copies per key: " + "; ".join(told) + "."
