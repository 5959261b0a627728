"""The Distribution Observer: what it says is what a slow count says."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections import Counter
from pathlib import PurePath
from types import SimpleNamespace

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless import folds, measures
from skewless.errors import SkewlessError
from skewless.spark import Observer, group, route
from skewless.spark.input.version import notices_other_order
from skewless.spark.observe import observer as observe
from skewless.spark.observe import progress
from skewless.spark.report.task import WorkerReport, worker_reports
from tests.spark.own_folds import Longest
from tests.spark.streams import Files, eventually, run_to_end


@pytest.fixture(scope="module")
def df(spark):
    ranks = np.random.default_rng(5).zipf(1.5, 2000) % 60
    rows = [(f"w{r}", "x" * (r % 5)) for r in ranks.tolist()]
    return spark.createDataFrame(rows, "w string, s string").coalesce(1).cache()


def counted(df, scheme, workers):
    """The slow way: loads, and pairs of worker and key."""
    routed = route(df, "w", scheme, workers).select("worker", "w").collect()
    loads = Counter(r.worker for r in routed)
    return [loads[i] for i in range(workers)], {(r.worker, r.w) for r in routed}


@pytest.mark.connect
@pytest.mark.parametrize("own", [False, True])
def test_a_batch_job_is_measured_exactly(spark, df, tmp_path, own):
    observer = Observer(log=tmp_path / "log.jsonl")
    for scheme in ("key", "partial"):
        grouping = group(df, "w", scheme, 5, observer=observer)
        grouping.fold(folds.count(), *([Longest()] if own else [])).collect()
    records = observer.records()
    assert [r.scheme for r in records] == ["key", "partial"]
    for record in records:
        loads, pairs = counted(df, record.scheme, 5)
        keys = len({key for _, key in pairs})
        assert record.messages == 2000
        if record.scheme != "key" and not notices_other_order(df):
            # An older Spark routes by the order of what travels: other columns, another order.
            assert sum(record.loads) == 2000
            continue
        assert record.loads == loads
        assert (record.partials, record.keys) == (len(pairs), keys)
        assert record.replication == len(pairs) / keys
        assert record.imbalance == measures.imbalance(np.array(loads))
        assert record.stddev_percent == measures.stddev_percent(np.array(loads))
        assert record.batch is None
        assert record.messages_per_second == pytest.approx(2000 / record.seconds)
        assert record.flushes == 0
    assert records[1].imbalance < records[0].imbalance
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["loads"] for line in lines] == [r.loads for r in records]
    frame = observer.frame(spark)
    assert [r.loads for r in frame.orderBy("ended_s").collect()] == [r.loads for r in records]


@pytest.mark.connect
def test_each_micro_batch_is_measured_and_served_to_prometheus(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    sizes = [200, 300]
    for size in sizes:
        files.put([(f"w{i % 7}",) for i in range(size)])
    observer = Observer(port=0)
    try:
        counts = group(files.stream(), "w", "shuffle", 4, observer=observer).fold(folds.count())
        run_to_end(counts, tmp_path / "checkpoint", "update")
        records = eventually(lambda: len(observer.records()) == 2 and observer.records())
        listener = progress._LISTENERS[spark]
        eventually(lambda: listener._ended and not listener._running)
        url = f"http://127.0.0.1:{observer.port}/metrics"
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
    finally:
        observer.close()
    assert [r.batch for r in records] == [0, 1]
    assert [r.loads for r in records] == [[size // 4] * 4 for size in sizes]
    assert [(r.keys, r.replication) for r in records] == [(7, 4.0)] * 2
    assert all(r.seconds > 0 and len(r.busy_s) == 4 for r in records)
    assert 'skewless_messages_total{scheme="shuffle",worker="3"} 125.0' in text
    assert 'skewless_replication{scheme="shuffle"} 4.0' in text


def test_queries_that_ended_are_forgotten_but_for_the_last_which_may_start_again():
    listener, told = progress._Listener(), []

    def run_one_batch(run, metric):
        seen = SimpleNamespace(observedMetrics={metric: None}, runId=run, batchId=0)
        listener.onQueryProgress(SimpleNamespace(progress=seen))
        listener.onQueryTerminated(SimpleNamespace(runId=run))
        assert told[-1] == run

    for number in range(3 * progress.KEPT):
        listener.expect(f"m{number}", lambda batch: told.append(batch.runId))
        run_one_batch(f"first run of {number}", f"m{number}")
        run_one_batch(f"restart beside {number}", "m0")
    kept = range(2 * progress.KEPT + 1, 3 * progress.KEPT)
    assert set(listener.handlers) == {"m0", *(f"m{number}" for number in kept)}


def test_queries_that_are_never_started_are_forgotten_but_for_the_last(monkeypatch):
    monkeypatch.setattr(progress, "AWAITED_KEPT", 2)
    listener = progress._Listener()
    listener.expect("running", lambda batch: None)
    seen = SimpleNamespace(observedMetrics={"running": None}, runId="a", batchId=0)
    listener.onQueryProgress(SimpleNamespace(progress=seen))
    for number in range(4):
        listener.expect(f"m{number}", lambda batch: None)
    assert set(listener.handlers) == {"running", "m2", "m3"}


def test_restarts_of_streams_leave_neither_listeners_nor_handlers_nor_threads(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr(progress, "KEPT", 1)
    monkeypatch.setattr(progress, "AWAITED_KEPT", 1)
    files = Files(spark, tmp_path / "in", "w string")
    observer, checkpoint = Observer(), str(tmp_path / "checkpoint")
    progress.after_each_batch(spark, "none", lambda batch: None)
    listening = len(spark.streams._jsqm.listListeners())
    threads = {t for t in threading.enumerate() if t.name.startswith("skewless")}
    for start in range(2):
        files.put([(f"w{i % 3}",) for i in range(20)])
        for _ in range(3):  # the last is started
            grouping = group(
                files.stream(), "w", "graded", 2, checkpoint=checkpoint, observer=observer
            )
            counts = grouping.fold(folds.count())
        query = counts.writeStream.outputMode("update").format("noop")
        query = query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        eventually(lambda expected=start + 1: len(observer.records()) == expected)
    listener = progress._LISTENERS[spark]
    eventually(lambda: not listener._running)
    assert len(listener.handlers) <= 2, "one that ended, one that never ran"
    assert len(spark.streams._jsqm.listListeners()) == listening
    assert {t for t in threading.enumerate() if t.name.startswith("skewless")} <= threads


def test_an_endpoint_is_off_by_default_and_a_taken_port_is_refused():
    assert Observer().port is None
    observer = Observer(port=0)
    try:
        with pytest.raises(SkewlessError, match=r"cannot be served on 127\.0\.0\.1:\d+"):
            Observer(port=observer.port)
    finally:
        observer.close()


def test_a_log_in_no_folder_is_refused(tmp_path):
    with pytest.raises(SkewlessError, match="make the folder first"):
        Observer(log=tmp_path / "nothing" / "log")


def test_a_log_may_be_named_by_any_kind_of_path(df, tmp_path):
    observer = Observer(log=PurePath(tmp_path / "log"))
    group(df, "w", "key", 2, observer=observer).fold(folds.count()).collect()
    assert len(observer.records()) == 1
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_a_frame_without_a_session_and_a_timeout_that_is_no_number_are_refused():
    with pytest.raises(SkewlessError, match="made with a Spark session, not with None"):
        Observer().frame(None)
    with pytest.raises(SkewlessError, match="The timeout is a number, not 'a'"):
        Observer().records("a")


def test_a_job_that_never_ran_leaves_no_record(df):
    observer = Observer()
    group(df, "w", "key", 2, observer=observer).fold(folds.count())
    assert observer.records(timeout_s=0.1) == []


@pytest.mark.connect
def test_an_action_that_failed_or_had_no_rows_leaves_no_record(df):
    observer = Observer()
    nothing = group(df.where("false"), "w", "key", 2, observer=observer).fold(folds.count())
    assert nothing.collect() == []
    assert observer.records() == []
    failing = df.withColumn("s", F.expr("if(s = 'xx', raise_error('the row is bad'), s)"))
    result = group(failing, "w", "key", 2, observer=observer).fold(folds.max("s"))
    said = r"(USER_RAISED_EXCEPTION\]|RuntimeException:) the row is bad"  # before 4.0 without name
    with pytest.raises(Exception, match=said):
        result.collect()
    assert observer.records(timeout_s=0.5) == []


class Told:
    """An observation of Spark Connect: nothing, until somebody says so."""

    def __init__(self):
        self.get = {}


class Ended:
    """An observation whose session has ended."""

    @property
    def get(self):
        raise RuntimeError("no session")


def test_a_job_is_awaited_until_it_or_the_session_ends(tmp_path):
    observer = Observer(log=tmp_path / "log")
    partials, results = Told(), Told()
    observer.watch("key", 1, "succeeds", partials, results)
    observer.watch("key", 1, "never runs", Told(), Told())
    observer.watch("key", 1, "lost", Ended(), Ended())
    assert observer.records() == []
    report = WorkerReport(0, 1, 5, 2, 0, 0.1, 0.0, 1.0)
    results.get = {"keys": 2}
    partials.get = {"reports": json.dumps([json.dumps(report)])}
    eventually(lambda: (tmp_path / "log").exists())  # though nobody asks
    assert [record.messages for record in observer.records()] == [5]
    assert [job.run for job in observer._awaited] == ["never runs"]


def test_a_closed_observer_awaits_nothing_by_itself(tmp_path):
    observer = Observer(log=tmp_path / "log")
    observer.watch("key", 1, "never runs", Told(), Told())
    observer.close()
    eventually(lambda: observer._asking is None)
    observer.watch("key", 1, "nor does this", Told(), Told())
    assert observer._asking is None


def test_folds_that_never_run_take_no_threads(spark, df):
    observer, before = Observer(), threading.active_count()
    jvm = spark._jvm.java.lang.management.ManagementFactory.getThreadMXBean()
    in_jvm = jvm.getThreadCount()
    for _ in range(80):
        result = group(df, "w", "key", 2, observer=observer).fold(folds.count())
    start_s = time.monotonic()
    assert observer.records() == []
    assert time.monotonic() - start_s < 20, "it waited for what never runs"
    assert threading.active_count() == before
    assert jvm.getThreadCount() < in_jvm + 60  # Spark's own pools grow and shrink, by some thirty
    result.collect()
    assert len(observer.records()) == 1


def test_the_last_records_are_kept(monkeypatch):
    monkeypatch.setattr(observe, "RECORDS_KEPT", 3)
    observer = Observer()
    for batch in range(5):
        observer.add(observe.make_record("key", 2, "run", batch, [], None, 1.0))
    assert [record.batch for record in observer.records()] == [2, 3, 4]


def test_only_the_last_attempt_of_a_worker_counts():
    reports = [
        WorkerReport(1, 70, 5, 2, 0, 0.1, 0.0, 1.0),
        WorkerReport(1, 9, 50, 20, 0, 0.1, 0.0, 1.0),
        WorkerReport(0, 3, 1, 1, 0, 0.1, 0.0, 1.0),
    ]
    seen = worker_reports(map(json.dumps, reports))
    assert [(r.worker, r.messages) for r in seen] == [(0, 1), (1, 5)]


def test_a_worker_that_flushes_says_so(df):
    observer = Observer()
    rows = df.union(df).select(F.concat("w", F.rand(3).cast("string")).alias("w"))
    group(rows, "w", "key", 2, observer=observer, most_keys=100).fold(folds.count()).collect()
    assert observer.records()[0].flushes > 0
