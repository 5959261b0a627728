"""Consistent Grouping on an engine: figures 12 and 13 of the paper, on Spark.

24 workers are Spark tasks that sleep the paper's delay per message, so 24 threads on few cores act
as 24 machines; in figure 13 two of them run at 30 % (in the quick size one of 6). The stream has
the p1 of the paper's tweets, 2.67 %, over 26,000 keys, so that merging by key stays small beside
the work. Throughput and latency are the engine's: of a micro-batch, its messages ÷ its seconds from
trigger to commit, and these seconds. The first batches are the paper's grace period.

What must come out follows from the loads: a batch lasts as long as max(load ÷ speed) over the
workers. With two of 24 at 30 %, partial and shuffle grouping take 3.14 times the ideal, whatever
the hashes. Key grouping takes 2.6 to 6.0 times, depending on which keys hash to a slow worker; so
of `SEEDS` seeds that one runs on Spark whose time lies in the middle. Consistent Grouping with ten
virtual workers each comes within 4 % of the ideal. Starting tasks and merging add to every batch,
most where all workers end at once and none covers the others' start: so a batch has eight seconds
of even work, 2.5 in the quick size.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.hashing import identities
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_least, between
from skewless.schemes import scheme_of
from skewless.simulate.sources import route
from skewless.streams import Stream, stream_of

SCHEMES = ("key", "partial", "shuffle", "consistent")
SLOW = 0.3
SEEDS = 21
TOP = 10


def figure12(setting: Setting) -> Reproduction:
    """Throughput and latency against the delay when all workers are equal."""
    delays = (1.0,) if setting.quick else (0.4, 1.0)
    batches, grace = (3, 1) if setting.quick else (5, 2)
    speeds = (1.0,) * (12 if setting.quick else 24)
    rows = _runs(delays, speeds, SCHEMES, batches, grace, setting)
    value = {(r["scheme"], r["delay_ms"]): r for r in rows}
    memory = {scheme: float(value[scheme, 1.0]["partials_per_batch"]) for scheme in SCHEMES}
    checks = [
        _exact(rows),
        at_least(
            "1 ms: consistent's throughput ÷ key's",
            _ratio(value, "throughput", "consistent", "key"),
            1.1,
        ),
        at_least(
            "1 ms: consistent's throughput ÷ shuffle's",
            _ratio(value, "throughput", "consistent", "shuffle"),
            0.85,
        ),
        between(
            "consistent's partial counts lie between key's and shuffle's (share; paper: 0.21)",
            (memory["consistent"] - memory["key"]) / (memory["shuffle"] - memory["key"]),
            0.0,
            0.5,
        ),
    ]
    return Reproduction(
        "consistent-fig12",
        f"Consistent Grouping, figure 12: {len(speeds)} equal machines, on Spark",
        rows,
        checks,
        _panels(rows, SCHEMES, delays),
    )


def figure13(setting: Setting) -> Reproduction:
    """Throughput and latency when two of the workers run at 30 %."""
    schemes = ("key", "consistent") if setting.quick else SCHEMES
    batches, grace = (3, 2) if setting.quick else (5, 3)
    slow, workers = (1, 6) if setting.quick else (2, 24)
    speeds = (SLOW,) * slow + (1.0,) * (workers - slow)
    rows = _runs((1.0,), speeds, schemes, batches, grace, setting)
    value = {(r["scheme"], r["delay_ms"]): r for r in rows}
    others = [scheme for scheme in schemes if scheme not in ("key", "consistent")]
    checks = [
        _exact(rows),
        at_least(
            "consistent's throughput ÷ key's (paper: up to 3.44)",
            _ratio(value, "throughput", "consistent", "key"),
            2,
        ),
        at_least(
            "key's latency ÷ consistent's (paper: up to 2)",
            _ratio(value, "latency_s", "key", "consistent"),
            2,
        ),
        at_least(
            "key's slowest worker ÷ consistent's, in busy seconds without the engine's own",
            _ratio(value, "slowest_worker_s", "key", "consistent"),
            2,
        ),
        *(
            at_least(
                f"consistent's throughput ÷ {other}'s",
                _ratio(value, "throughput", "consistent", other),
                1,
            )
            for other in others
        ),
    ]
    ideal = _ideal_key_times(rows[0]["messages_per_batch"], speeds, setting.seed)
    low, middle, high = np.quantile(list(ideal.values()), [0, 0.5, 1])
    return Reproduction(
        "consistent-fig13",
        f"Consistent Grouping, figure 13: {slow} of {len(speeds)} machines at 30 %, on Spark",
        rows,
        checks,
        _panels(rows, schemes, (1.0,)),
        notes=[
            f"By its loads alone, key grouping takes {low:.2f} to {high:.2f} times the ideal over "
            f"{SEEDS} seeds, {middle:.2f} in the middle: that seed ran."
        ],
    )


def _runs(
    delays: Sequence[float],
    speeds: Sequence[float],
    schemes: Sequence[str],
    batches: int,
    grace: int,
    setting: Setting,
) -> list[dict[str, Any]]:
    """Each scheme with each delay; the grace period is not counted."""
    from skewless.spark.lab.pipeline import Pipeline, run
    from skewless.spark.lab.session import local_session
    from skewless.spark.observe.observer import Observer

    rows = []
    workers = len(speeds)
    with local_session(workers) as spark:
        _warm_up(spark, workers)
        for delay_ms in delays:
            each = int((2.5 if setting.quick else 8) * workers / delay_ms * 1000)
            stream = _tweets(each * batches)
            seed = _middle_seed(each, speeds, setting.seed)
            largest = _largest_counts(stream, seed)
            for name in schemes:
                observer = Observer()
                pipeline = Pipeline(
                    stream, scheme_of(name), workers, batches, delay_ms, seed=seed, speeds=speeds
                )
                best = run(spark, pipeline, observer, top=TOP)
                seen = observer.records()[grace:]
                exact = [count for _, count in best] == largest
                rows.append({"scheme": name, **_figures(pipeline, seen), "exact": exact})
                setting.step(f"{name}, {delay_ms} ms")
    return rows


def _warm_up(spark: Any, workers: int) -> None:
    """Let each of Spark's Python processes load the kernels, which takes as long as a batch."""
    from skewless import folds
    from skewless.spark import group

    rows = spark.range(0, workers, 1, workers)
    group(rows, "id", "consistent", workers).fold(folds.count()).collect()


def _figures(pipeline: Any, seen: Sequence[Any]) -> dict[str, Any]:
    """What the observer saw of a run after its grace period."""
    loads, slow = np.sum([record.loads for record in seen], axis=0), np.array(pipeline.speeds) < 1
    seconds = [record.seconds for record in seen]
    each = mean(record.messages for record in seen)
    return {
        "delay_ms": pipeline.delay_ms,
        "seed": pipeline.seed,
        "messages_per_batch": int(each),
        "throughput": each / mean(seconds),
        "latency_s": mean(seconds),
        "slowest_worker_s": mean(max(record.busy_s) for record in seen),
        "ideal_s": each * pipeline.delay_ms / 1000 / sum(pipeline.speeds),
        "load_of_slow_workers": float(loads[slow].mean() / loads[~slow].mean()) if any(slow) else 1,
        "partials_per_batch": mean(record.partials for record in seen),
    }


def _tweets(messages: int) -> Stream:
    """A stream with the p1 of the paper's tweets: 2.67 %."""
    return stream_of(f"zipf:z=0.784,keys=26000,messages={messages}")


def _middle_seed(messages: int, speeds: Sequence[float], first: int) -> int:
    """The seed for which key grouping is neither lucky nor unlucky."""
    times = _ideal_key_times(messages, speeds, first)
    return sorted(times, key=lambda seed: times[seed])[SEEDS // 2]


def _ideal_key_times(messages: int, speeds: Sequence[float], first: int) -> dict[int, float]:
    """How long a batch takes with key grouping, as a multiple of the ideal, for each seed."""
    times, workers = {}, len(speeds)
    for seed in range(first, first + SEEDS):
        keys = identities(pa.array(_keys(_tweets(messages), seed).view(np.int64)))
        loads = np.bincount(route(keys, "key", workers, seed=seed), minlength=workers)
        times[seed] = float((loads / np.array(speeds)).max() / (messages / sum(speeds)))
    return times


def _largest_counts(stream: Stream, seed: int) -> list[int]:
    _, counts = np.unique(_keys(stream, seed), return_counts=True)
    largest: list[int] = np.sort(counts)[::-1][:TOP].tolist()
    return largest


def _keys(stream: Stream, seed: int) -> Any:
    return np.concatenate([chunk.keys for chunk in stream.chunks(seed)])


def _exact(rows: list[dict[str, Any]]) -> Check:
    exact = all(row["exact"] for row in rows)
    return Check(f"the {TOP} largest counts equal a plain count's", "True", str(exact), exact)


def _ratio(value: dict[tuple[str, float], Any], what: str, one: str, other: str) -> float:
    """One scheme's figure ÷ another's, at 1 ms."""
    return float(value[one, 1.0][what] / value[other, 1.0][what])


def _panels(
    rows: list[dict[str, Any]], schemes: Sequence[str], delays: Sequence[float]
) -> list[Panel]:
    """Throughput and latency: bars per scheme for each delay."""
    return [
        Panel(
            title,
            "",
            unit,
            [
                Line(f"{delay} ms", schemes, [r[what] for r in rows if r["delay_ms"] == delay])
                for delay in delays
            ],
            kind="bars",
        )
        for what, title, unit in (
            ("throughput", "throughput", "messages per second"),
            ("latency_s", "latency of a micro-batch", "seconds"),
        )
    ]
