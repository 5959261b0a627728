"""compare and run: the same figures and results whatever the scheme, and mistakes in a sentence."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.spark import Observer, compare
from skewless.spark.input.version import as_arrow
from skewless.spark.lab.frames import write_keys
from skewless.spark.lab.pipeline import Pipeline, run
from skewless.spark.lab.session import beside, local_session
from skewless.streams import stream_of

LINES = ["the cat and the hat", "", "the  end\tof the cat", "été ☃ the"]


def test_ctrl_c_interrupts_the_wait_and_not_what_is_waited_for():
    over, met = threading.Event(), []

    def talk():
        try:
            met.append(over.wait(30))
        except BaseException as error:
            met.append(error)

    talking = beside(talk)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        talking.result()
    over.set()
    assert talking.result(10) is None
    assert met == [True]
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 // 0).result()


@pytest.fixture
def folder(tmp_path):
    source = tmp_path / "lines"
    source.mkdir()
    for number in range(3):
        (source / f"{number}.txt").write_text("\n".join(LINES) + "\n")
    return source


def words():
    return Counter(" ".join(LINES * 3).split())


def test_compare_gives_every_scheme_the_digest_of_plain_counts(spark, tmp_path):
    path = tmp_path / "words.txt.gz"
    path.write_bytes(gzip.compress(("\n".join(LINES * 3) + "\n").encode()))
    specs = ["key", "partial", "shuffle", "w-choices", "distribution-aware:learn=10"]
    found = compare(spark, f"words:path={path}", specs, 3, sources=2, rounds=1)
    lines = "".join(sorted(f"{word}\t{count}\n" for word, count in words().items()))
    truth = hashlib.sha256(lines.encode()).hexdigest()
    assert {result.result_digest for result in found} == {truth}
    assert {result.messages for result in found} == {sum(words().values())}
    assert found[0].replication == 1
    assert found[2].imbalance < found[0].imbalance
    assert all(sum(result.loads) == result.messages for result in found)


def test_a_delay_per_message_sets_the_ideal_time_and_no_run_beats_it(spark):
    stream = "zipf:z=1.0,keys=50,messages=2000"
    # Long enough that a job which does not sleep is over before.
    (result,) = compare(spark, stream, ["shuffle"], 2, delay_ms=4, sources=2, rounds=1)
    assert result.ideal_s == pytest.approx(4)
    assert result.wall_s >= result.ideal_s


@pytest.mark.parametrize("kind", ["words", "tsv", "csv", "parquet"])
def test_files_are_read_by_spark_as_by_the_simulator(spark, tmp_path, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from skewless.hashing import identities

    path = tmp_path / f"file.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"k": pa.array([3, 1, 3], pa.int32())}), path)
    else:
        separator = "," if kind == "csv" else "\t"
        rows = [("a", "b"), ("x y", "z"), ("1", "z")]
        path.write_text("".join(separator.join(row) + "\n" for row in rows))
    column = {"parquet": "k", "csv": "b"}.get(kind, "2")
    stream = stream_of(f"{kind}:path={path},column={column}")
    frame = write_keys(spark, stream, tmp_path / "keys", 2)
    ours = sorted(identities(as_arrow(frame)["key"].combine_chunks()).tolist())
    assert ours == sorted(k for chunk in stream.chunks() for k in chunk.keys.tolist())


@pytest.mark.parametrize(
    ("spec", "key"),
    [("zipf:z=1,keys=50,messages=300", 1), ("countries:skew=50,messages=300", "United States")],
)
def test_spark_hashes_the_keys_of_a_drawn_stream_to_what_the_simulator_routes(
    spark, tmp_path, spec, key
):
    stream = stream_of(spec)
    frame = write_keys(spark, stream, tmp_path / "keys", 2, seed=3)
    theirs = as_arrow(frame.selectExpr("key", "xxhash64(key) h"))
    drawn = np.concatenate([chunk.keys for chunk in stream.chunks(3)])
    assert sorted(theirs["h"].to_pylist()) == sorted(drawn.view(np.int64).tolist())
    assert theirs["key"].to_pylist().count(key) == max(Counter(drawn.tolist()).values())


def test_a_folder_of_text_runs_as_a_stream_to_the_last_batch(spark, folder, tmp_path):
    told = []
    pipeline = Pipeline(folder, scheme_of("partial"), 3, sink=tmp_path / "counts")
    best = run(spark, pipeline, Observer(), told.append, top=2)
    assert best == [("the", words()["the"]), ("cat", words()["cat"])]
    saved = {row[0]: row[1] for row in spark.read.parquet(str(tmp_path / "counts")).collect()}
    assert saved == dict(words())
    assert [record.batch for record in told] == [0, 1, 2]
    assert sum(record.messages for record in told) == sum(words().values())


def test_a_checkpoint_goes_on_where_the_last_run_stopped(spark, folder, tmp_path):
    pipeline = Pipeline(folder, scheme_of("key"), 2, checkpoint=tmp_path / "checkpoint")
    run(spark, pipeline, Observer())
    (folder / "late.txt").write_text("the the\n")
    told = []
    best = run(spark, pipeline, Observer(), told.append, top=1)
    assert best == [("the", words()["the"] + 2)]
    assert sum(record.messages for record in told) == 2


def test_a_generated_stream_runs_as_one_batch_job(spark, tmp_path):
    told, sink = [], tmp_path / "counts"
    for left_by_a_kill in (sink.with_name("counts.old"), sink):
        left_by_a_kill.mkdir()
        (left_by_a_kill / "_SUCCESS").touch()
    stream = stream_of("zipf:z=1.5,keys=20,messages=500")
    pipeline = Pipeline(stream, scheme_of("dynamic"), 3, batches=0, sink=sink)
    persisted = set(spark.sparkContext._jsc.getPersistentRDDs())
    best = run(spark, pipeline, Observer(), told.append, top=1)
    assert sum(told[0].loads) == 500
    assert best[0][1] > 100
    assert sum(row[1] for row in spark.read.parquet(str(sink)).collect()) == 500
    assert [path.name for path in tmp_path.iterdir()] == ["counts"]
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= persisted


def test_a_batch_job_splits_hot_keys_by_a_plan(tmp_path, spark):
    """Keys are the only column here, so rows of one key are told apart by their number."""
    (tmp_path / "keys.txt").write_text("the\n" * 4000)
    for source in (stream_of("zipf:z=2,keys=20,messages=5000"), tmp_path):
        told = []
        pipeline = Pipeline(source, scheme_of("graded-planned"), 4, batches=0)
        run(spark, pipeline, Observer(), told.append)
        assert max(told[0].loads) < 1.2 * sum(told[0].loads) / 4


def test_mistakes_are_one_sentence(tmp_path, spark):
    with pytest.raises(SkewlessError, match="holds no file"):
        Pipeline(tmp_path / "nowhere", scheme_of("key"), 2)
    with pytest.raises(SkewlessError, match="nothing to go on from"):
        Pipeline(stream_of("zipf:z=1,keys=2,messages=2"), scheme_of("key"), 2, checkpoint=Path("c"))
    with pytest.raises(SkewlessError, match="micro-batches must be at least 0"):
        Pipeline(stream_of("zipf:z=1,keys=2,messages=2"), scheme_of("key"), 2, batches=-1)
    with pytest.raises(SkewlessError, match="rounds must be at least 1"):
        compare(spark, "zipf:z=1,keys=2,messages=2", ["key"], 2, rounds=0)
    with pytest.raises(SkewlessError, match="sources must be at least 1"):
        compare(spark, "zipf:z=1,keys=2,messages=2", ["key"], 2, sources=0)
    with pytest.raises(SkewlessError, match="no scheme to compare"):
        compare(spark, "zipf:z=1,keys=2,messages=2", [], 2)
    (tmp_path / "blank.txt").write_text("  \n")
    with pytest.raises(SkewlessError, match="is empty"):
        compare(spark, f"words:path={tmp_path / 'blank.txt'}", ["key"], 2)
    with pytest.raises(SkewlessError, match="no Spark master 'foo'"), local_session(2, "foo"):
        pass
    with pytest.raises(SkewlessError, match="remember"):
        compare(spark, "zipf:z=1,keys=2,messages=2", ["potc"], 2, rounds=1)


MANY = """
import resource, sys
from pathlib import Path
from skewless.spark.lab.frames import write_keys
from skewless.streams import stream_of

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
write_keys(None, stream_of("zipf:z=1,keys=9,messages=999"), Path(sys.argv[1]), 300)
"""


def test_more_files_than_may_be_open_are_one_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True
    )
    assert "cannot be cut into 300 files" in done.stderr.splitlines()[-1]


def test_only_an_earlier_result_is_replaced(spark, folder, tmp_path):
    def pipeline(sink):
        return Pipeline(folder, scheme_of("key"), 2, sink=sink, batches=0)

    (tmp_path / "empty").mkdir()
    for _ in range(2):
        run(spark, pipeline(tmp_path / "empty"), Observer())
    (tmp_path / "notes.txt").write_text("kept")
    for sink in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(SkewlessError, match="no earlier result"):
            pipeline(sink)
    with pytest.raises(SkewlessError, match="no name of its own"):
        pipeline(Path())
