"""How the figures of the proactive paper are run: its streams (section V-A), many of each.

Times are milliseconds. A stream has 32,768 messages over 4,096 keys; each of the costs belongs to
as many keys, which ones differs from stream to stream, as do the messages. Over-provisioning is the
rate that workers can sustain ÷ the rate of arrivals. Signals are heard 10 ms after the message that
caused them was served: a message comes every 6.5 ms on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from skewless.results import Line, Panel, Setting
from skewless.schemes import Scheme
from skewless.schemes.api import F64
from skewless.schemes.proactive.scheduler import ProactivePlan
from skewless.schemes.proactive.scheme import ProactiveShuffleGrouping
from skewless.simulate.queue.costs import costs_of
from skewless.simulate.queue.run import Cluster, QueueResult, queue
from skewless.sketch.count_min import CountMin, add_all
from skewless.streams import stream_of

MESSAGES, KEYS, WORKERS = 32_768, 4_096, 5
DELAY_MS = 10.0
DEFAULT_STREAMS, QUICK_STREAMS = 100, 5

ROUND_ROBIN, FULL, KNOWN = "round robin", "full knowledge", "costs known"
PAPER, MASS = "paper", "mass"
PAPER_BACKLOG, MASS_BACKLOG = "paper, backlog", "mass, backlog"
VARIANTS = {
    PAPER: {"stability": "paper"},
    MASS: {},
    PAPER_BACKLOG: {"stability": "paper", "backlog": True},
    MASS_BACKLOG: {"backlog": True},
}


@dataclass(frozen=True)
class Point:
    """What a figure varies."""

    z: float = 1.0
    messages: int = MESSAGES
    workers: int = WORKERS
    provisioning: float = 1.0
    costs: str = f"evenly:keys={KEYS}"
    epsilon: float = 0.05

    @property
    def stream(self) -> str:
        """The stream's spec."""
        return f"zipf:z={self.z},keys={KEYS},messages={self.messages}"

    def scheme(self, label: str) -> Scheme | str:
        """The scheme of this label."""
        if label in (ROUND_ROBIN, FULL):
            return {ROUND_ROBIN: "shuffle", FULL: "full-knowledge"}[label]
        if label == KNOWN:
            return KnownCosts(epsilon=self.epsilon, stream=self.stream, costs=self.costs)
        return ProactiveShuffleGrouping(epsilon=self.epsilon, **VARIANTS[label])  # type: ignore[arg-type]


@dataclass(frozen=True)
class KnownCosts(ProactiveShuffleGrouping):
    """Greedy on the sketched costs of a whole stream, known before it starts; nobody learns.

    It tells what the sketches lose from what learning in time loses.
    """

    window: int = 1 << 60
    stream: str = ""
    costs: str = ""

    name: ClassVar[str] = "proactive-known"

    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> ProactivePlan:
        """The matrices of the whole stream."""
        plan = super().plan(workers, seed, capacities)
        counts, totals = (
            CountMin(np.zeros((self.rows, self.columns)), plan.hashes, np.zeros(1))
            for _ in range(2)
        )
        for chunk in stream_of(self.stream).chunks(seed):
            add_all(counts, chunk.keys, np.ones(chunk.keys.size))
            add_all(totals, chunk.keys, costs_of(self.costs).of(chunk.keys, 0, seed))
        return plan._replace(known=np.stack([counts.counts, totals.counts], axis=-1))


def streams_of(setting: Setting) -> int:
    """How many streams: as asked, or the default of the size."""
    if setting.streams is not None:
        return setting.streams
    return QUICK_STREAMS if setting.quick else DEFAULT_STREAMS


def completion(point: Point, label: str, seed: int) -> QueueResult:
    """One stream through one scheme."""
    cluster = Cluster(point.workers, 1 / point.provisioning, costs=point.costs, delay=DELAY_MS)
    return queue(point.stream, point.scheme(label), cluster, seed=seed, replication=False)


@dataclass(frozen=True)
class Completions:
    """Mean completion times of every stream, by scheme, with round robin's among them."""

    means_ms: Mapping[str, F64]  # [streams]
    control: Mapping[str, float]  # control messages per message

    def ratio(self, label: str, to: str = ROUND_ROBIN) -> float:
        """The mean over streams of a scheme's mean completion time ÷ another's."""
        return float((self.means_ms[label] / self.means_ms[to]).mean())

    def speed_ups(self, label: str) -> F64:
        """Round robin's completion time ÷ the scheme's, of every stream."""
        return np.asarray(self.means_ms[ROUND_ROBIN] / self.means_ms[label])

    def rows(self, **about: Any) -> list[dict[str, Any]]:
        """A row for each scheme."""
        return [
            about
            | {
                "scheme": label,
                "streams": means_ms.size,
                "mean_ms": float(means_ms.mean()),
                "min_ms": float(means_ms.min()),
                "max_ms": float(means_ms.max()),
                "ratio_to_round_robin": self.ratio(label),
                "speed_up_mean": float(self.speed_ups(label).mean()),
                "speed_up_min": float(self.speed_ups(label).min()),
                "speed_up_max": float(self.speed_ups(label).max()),
                "control_share": self.control[label],
            }
            for label, means_ms in self.means_ms.items()
        ]


def complete(
    setting: Setting, point: Point, labels: Sequence[str], streams: int | None = None
) -> Completions:
    """All streams of a point through round robin and these schemes."""
    means, control = {}, {}
    for label in (ROUND_ROBIN, *labels):
        seen = [
            completion(point, label, setting.seed + s)
            for s in range(streams or streams_of(setting))
        ]
        means[label] = np.array([result.mean_latency for result in seen])
        control[label] = float(np.mean([r.control_messages / point.messages for r in seen]))
        setting.step(f"{label} at {point}")
    return Completions(means, control)


def sweep(
    setting: Setting, axis: str, values: Sequence[Any], labels: Sequence[str]
) -> dict[Any, Completions]:
    """The default point with one of its fields at each of these values."""
    default: Any = Point()
    return {value: complete(setting, replace(default, **{axis: value}), labels) for value in values}


def speed_up_panel(
    title: str, axis: str, seen: Mapping[Any, Completions], log_x: bool = False
) -> Panel:
    """Mean speed-ups of all schemes but round robin, and the paper's rule with its extremes."""
    xs = list(seen)
    labels = [label for label in next(iter(seen.values())).means_ms if label != ROUND_ROBIN]
    lines = [
        Line(label, xs, [float(seen[x].speed_ups(label).mean()) for x in xs]) for label in labels
    ]
    if PAPER in labels:
        lines += [
            Line(f"paper, {name}", xs, [float(pick(seen[x].speed_ups(PAPER))) for x in xs])
            for name, pick in (("least", np.min), ("most", np.max))
        ]
    return Panel(title, axis, "speed-up over round robin", lines, log_x=log_x)


def completion_panel(
    title: str, axis: str, seen: Mapping[Any, Completions], log: bool = False
) -> Panel:
    """Mean completion times of all schemes."""
    xs = list(seen)
    lines = [
        Line(label, xs, [float(seen[x].means_ms[label].mean()) for x in xs])
        for label in next(iter(seen.values())).means_ms
    ]
    return Panel(title, axis, "mean completion time (ms)", lines, log_x=log, log_y=log)


def listed(seen: Mapping[Any, Completions], label: str) -> str:
    """The mean speed-ups of one scheme, for a note."""
    return ", ".join(f"{x}: {seen[x].speed_ups(label).mean():.2f}" for x in seen)
