"""Schemes against each other on Spark: the same stream, the same fold, alternating runs."""

from __future__ import annotations

import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from skewless import folds
from skewless.errors import SkewlessError
from skewless.folds.delay import check_delay
from skewless.schemes import Scheme
from skewless.spark.fold.group import group
from skewless.spark.input.checks import check_scheme, check_worker_count
from skewless.spark.input.version import as_arrow
from skewless.spark.lab.frames import ROW_OF_FILE, write_keys
from skewless.spark.observe.observer import Observer
from skewless.spark.routing.learn import learn
from skewless.spark.routing.plan import Plan
from skewless.streams import Stream, stream_of

ROUNDS = 3


@dataclass(frozen=True)
class Comparison:
    """One scheme on Spark; the fields of `skewless compare --json`."""

    scheme: str
    workers: int
    messages: int
    keys: int
    wall_s: float
    ideal_s: float
    throughput: float
    loads: list[int]
    imbalance: float
    replication: float
    result_digest: str


def compare(
    spark: SparkSession,
    stream: Stream | str,
    schemes: Sequence[Scheme | str],
    workers: int,
    *,
    delay_ms: float = 0.0,
    sources: int = 8,
    rounds: int = ROUNDS,
    seed: int = 0,
    step: Callable[[str], None] | None = None,
) -> list[Comparison]:
    """Count the keys of a stream with each scheme; every message takes `delay_ms` at its worker.

    Each scheme runs once to warm up, which also gives its result. It then runs `rounds` times, in
    turns with the others, and the median counts. A scheme that learns from a prefix learns before
    the clock starts. A result that differs from a plain groupBy's is an error.

    step: is called with the name of each step that is done
    """
    done = step or (lambda name: None)
    flow = stream_of(stream)
    made = check_comparison(schemes, workers, delay_ms, sources, rounds, seed)
    with tempfile.TemporaryDirectory(prefix="skewless-compare-") as folder:
        keys = write_keys(spark, flow, Path(folder) / "keys", sources, seed)
        truth = digest(keys.groupBy("key").count())
        done("plain groupBy")
        runs = [_Run(keys, scheme, workers, delay_ms, seed) for scheme in made]
        for run in runs:
            run.warm_up()
            if run.digest != truth:
                raise SkewlessError(
                    f"The result of {run.scheme.spec} differs from a plain groupBy's: "
                    "please report this with the stream and the scheme."
                )
            done(f"{run.scheme.spec}, warm-up")
        for number in range(rounds):
            for run in runs:
                run.time()
                done(f"{run.scheme.spec}, run {number + 1} of {rounds}")
        return [run.result(delay_ms) for run in runs]


def check_comparison(
    schemes: Sequence[Scheme | str],
    workers: int,
    delay_ms: float,
    sources: int,
    rounds: int,
    seed: int,
) -> list[Scheme]:
    """The schemes, if they can be compared like this; needs no Spark yet."""
    check_worker_count(workers)
    check_delay(delay_ms)
    if not schemes:
        raise SkewlessError("There is no scheme to compare: give at least 1.")
    for name, number in (("rounds", rounds), ("sources", sources)):
        if number < 1:
            raise SkewlessError(f"The number of {name} must be at least 1, not {number}.")
    made = [check_scheme(scheme) for scheme in schemes]
    for scheme in made:
        scheme.plan(workers, seed)  # says so if there are too few workers
    return made


class _Run:
    """One scheme of a comparison."""

    def __init__(
        self, keys: DataFrame, scheme: Scheme, workers: int, delay_ms: float, seed: int
    ) -> None:
        self.scheme = scheme
        self._workers = workers
        self._seconds: list[float] = []
        self._observer = Observer()
        plan: Plan | None = None
        if scheme.learns == "prefix":
            plan = learn(keys, "key", scheme, workers, seed=seed)
        fold = folds.sleeping(folds.count(), delay_ms) if delay_ms else folds.count()
        self._counts: Callable[[Observer | None], DataFrame] = lambda observer: group(
            keys, "key", scheme, workers, seed=seed, plan=plan, salt=ROW_OF_FILE, observer=observer
        ).fold(fold)

    def warm_up(self) -> None:
        self.digest = digest(self._counts(self._observer))

    def time(self) -> None:
        start_s = time.perf_counter()
        self._counts(None).write.format("noop").mode("overwrite").save()
        self._seconds.append(time.perf_counter() - start_s)

    def result(self, delay_ms: float) -> Comparison:
        seen = self._observer.records()[0]
        wall_s = statistics.median(self._seconds)
        return Comparison(
            scheme=self.scheme.spec,
            workers=self._workers,
            messages=seen.messages,
            keys=seen.keys or 0,
            wall_s=wall_s,
            ideal_s=seen.messages * delay_ms / 1000 / self._workers,
            throughput=seen.messages / wall_s,
            loads=seen.loads,
            imbalance=seen.imbalance,
            replication=seen.replication or 0.0,
            result_digest=self.digest,
        )


def digest(counts: DataFrame) -> str:
    """sha256 of the sorted lines `key<TAB>count`; a null key is the empty word before the tab."""
    key, count = counts.columns
    table = as_arrow(counts.select(key, count))
    lines = sorted(
        f"{'' if k is None else k}\t{c}\n"
        for k, c in zip(table[key].to_pylist(), table[count].to_pylist(), strict=True)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()
