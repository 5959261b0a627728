"""Unequal workers: slower ones get less of the work, batch by batch, and results stay exact."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pytest

from skewless import folds
from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.spark import Observer, group, per_worker
from skewless.spark.adapt.plans import stream_folder
from skewless.spark.lab.pipeline import Pipeline
from skewless.streams import stream_of
from tests.spark.processors import SlowCountPerKey
from tests.spark.streams import Files, eventually, run_to_end
from tests.spark.test_control import run_kernel, words
from tests.test_cli import sentence

SPEC, SLOW = "consistent", 2


def owned(plan, workers):
    """How many virtual workers each worker has."""
    return np.bincount(plan.owners, minlength=workers)


def test_the_slow_worker_ends_with_fewer_virtual_workers_over_a_restart(spark, tmp_path):
    workers, batches = 6, [words(seed, 3000) for seed in range(4)]
    speeds = [0.3 if worker == SLOW else 1 for worker in range(workers)]
    files = Files(spark, tmp_path / "in", "w string")
    checkpoint, observer, scheme = tmp_path / "checkpoint", Observer(), scheme_of(SPEC)
    folder = stream_folder(str(checkpoint), scheme, workers, 0)
    for first in (0, 2):
        for keys in batches[first : first + 2]:
            files.put([(word,) for word in keys])
        grouping = group(
            files.stream(), "w", SPEC, workers, checkpoint=str(checkpoint), observer=observer
        )
        counts = grouping.fold(folds.sleeping(folds.count(), 0.2, speeds))
        _, rows = run_to_end(counts, checkpoint, "complete")
        eventually(lambda number=first + 2: number in folder._numbers())
        if first == 0:
            moved = folder.used(2).plan
    assert {row["w"]: row["count"] for row in rows} == Counter(chain(*batches))
    np.testing.assert_array_equal(folder.used(2).plan.owners, moved.owners)
    plans = [folder.used(batch).plan for batch in range(5)]
    assert {owned(plan, workers).sum() for plan in plans} == {10 * workers}
    assert owned(plans[0], workers).tolist() == [10] * workers
    for plan in plans[2:]:
        assert owned(plan, workers)[SLOW] == owned(plan, workers).min() <= 6
    # Nothing in flight moved: each batch went where its one plan sends it.
    loads = {record.batch: record.loads for record in observer.records()}
    expected = [run_kernel(scheme, *of, workers)[0] for of in zip(plans, batches, strict=False)]
    assert loads == dict(enumerate(expected))


def test_a_processor_that_is_slow_on_one_worker_gets_less_there(spark, tmp_path):
    workers, batches = 3, [words(seed, 900) for seed in range(3)]
    files = Files(spark, tmp_path / "in", "w string")
    for keys in batches:
        files.put([(word,) for word in keys])
    checkpoint, slow = tmp_path / "checkpoint", SlowCountPerKey(2, slow=SLOW)
    folder = stream_folder(str(checkpoint), scheme_of(SPEC), workers, 0)
    counted = per_worker(
        files.stream(), "w", SPEC, workers, slow, slow.SCHEMA, checkpoint=str(checkpoint)
    )
    _, rows = run_to_end(counted, checkpoint, "update")
    eventually(lambda: len(batches) in folder._numbers())
    assert counted.columns == ["worker", "at", "w", "count"]
    assert all(row.worker == row["at"] for row in rows)
    newest = Counter()  # a worker tells all that it holds after each batch
    for row in rows:
        newest[row.worker, row.w] = max(newest[row.worker, row.w], row["count"])
    totals = Counter()
    for (_, word), count in newest.items():
        totals[word] += count
    assert totals == Counter(chain(*batches))
    first, last = (owned(folder.used(batch).plan, workers) for batch in (0, len(batches)))
    assert (first.tolist(), last.sum()) == ([10] * workers, 10 * workers)
    assert last[SLOW] == last.min() <= 7


def test_each_worker_sleeps_by_its_own_speed():
    fold = folds.sleeping(folds.sleeping(folds.count(), 2, [1, 0.5]), 3, [1, 0.3])
    assert (fold.on_worker(0).delay_ms, fold.on_worker(0).fold.delay_ms) == (3, 2)
    assert fold.on_worker(1).delay_ms == pytest.approx(10)
    assert fold.on_worker(1).fold.delay_ms == pytest.approx(4)
    assert folds.count().alias("n").on_worker(5).name == "n"


def test_speeds_that_cannot_be_are_one_sentence(spark):
    for speed in (0, -1, float("nan"), float("inf")):
        with pytest.raises(SkewlessError, match="speed is a number above 0"):
            folds.sleeping(folds.count(), 1, [1, speed])
    grouping = group(spark.range(3), "id", "key", 3)
    with pytest.raises(SkewlessError, match="2 speeds and none for worker 2"):
        grouping.fold(folds.sleeping(folds.count(), 1, [1, 0.3]))
    stream, key = stream_of("zipf:z=1,keys=2,messages=2"), scheme_of("key")
    for changed, says in (
        ({"speeds": [1, 1, 1]}, "3 speeds for 2 workers"),
        ({"speeds": [1, 0]}, "number above 0"),
        ({"speeds": [1, 1], "delay_ms": 0}, "delay above 0 ms"),
    ):
        with pytest.raises(SkewlessError, match=says):
            Pipeline(stream, key, 2, **{"delay_ms": 1.0, **changed})


@pytest.mark.parametrize(
    ("speeds", "says"),
    [
        ("1,x", "--speeds takes numbers separated by commas"),
        ("1,1,1", "3 speeds for 2 workers"),
        ("1,0", "number above 0"),
    ],
)
def test_the_command_line_takes_speeds(capsys, monkeypatch, speeds, says):
    chosen = ["--scheme", "consistent", "--workers", "2", "--delay-ms", "1", "--speeds", speeds]
    stream = ["--stream", "zipf:z=1,keys=9,messages=9"]
    assert says in sentence(capsys, monkeypatch, "run", *chosen, *stream)
