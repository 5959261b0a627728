"""The live page of real queries, in a real browser."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.live import Page
from skewless.schemes import scheme_of
from skewless.spark import Observer, balanced_map, group
from skewless.spark.adapt.planned import plan_facts
from skewless.spark.observe import progress
from skewless.spark.observe.live_page import hottest
from skewless.spark.observe.progress import sentence_of
from skewless.spark.report.task import WorkerReport
from tests.browser import started, tab
from tests.spark.streams import Files, eventually, run_to_end


def snapshot(page):
    """Everything the page would show now, by the name of the query."""
    with urllib.request.urlopen(page.url + "events", timeout=60) as answer:
        found = json.loads(answer.readline()[6:])["queries"]
    return {query["name"]: query for query in found}


def words(batch, count=400):
    """A batch of words: one of them has half of all rows, one is a null, one is empty."""
    ranks = np.random.default_rng(batch).zipf(1.5, count // 2) % 40
    return ["<b>the</b>"] * (count // 2) + [
        {0: None, 2: ""}.get(rank, f"w{rank}") for rank in ranks.tolist()
    ]


def test_a_page_shows_two_running_queries_in_a_browser(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    files.put([(word,) for word in words(0)])
    page = Page()
    try:
        queries = []
        for scheme in ("key", "graded"):
            observer = Observer(page=page)
            checkpoint = str(tmp_path / scheme)
            grouping = group(
                files.stream(), "w", scheme, 4, checkpoint=checkpoint, observer=observer
            )
            writer = grouping.fold(folds.count()).writeStream.outputMode("update").format("noop")
            writer = writer.option("checkpointLocation", checkpoint).queryName(f"by {scheme}")
            queries.append(writer.trigger(processingTime="0.2 seconds").start())
        with started() as browser, tab(browser, page.url) as opened:
            opened.set_default_timeout(120_000)
            opened.wait_for_function("() => document.querySelectorAll('.keys tbody tr').length > 8")
            names = sorted(opened.locator("h2").all_text_contents())
            assert names == ["by graded", "by key"]
            assert opened.locator(".keys td.key").first.text_content() == "<b>the</b>"
            assert opened.locator(".keys .number").first.text_content() == "50.0 %"
            files.put([(word,) for word in words(1)])
            opened.wait_for_function(
                "() => [...document.querySelectorAll('.about')].every("
                "(about) => about.textContent.includes('800 messages so far'))",
            )
            for query in queries:
                query.stop()
            opened.wait_for_function(
                "() => [...document.querySelectorAll('.card .state')].every("
                "(state) => state.textContent === 'ended')"
            )
        seen, true = snapshot(page), Counter(words(1))
        for name, query in seen.items():
            newest = query["newest"]
            assert sum(newest["loads"]) == 400
            assert {key: count for key, count, _ in newest["hot"]} == {
                key: true[key] for key, _, _ in newest["hot"]
            }, name
        assert seen["by key"]["newest"]["hot"][0][2] == 1
        assert seen["by graded"]["newest"]["hot"][0][2] > 1, "the hot key is split"
        assert seen["by key"]["points"][-1][1] > 1.9 > seen["by graded"]["points"][-1][1]
    finally:
        page.close()


def test_without_a_page_no_worker_counts_keys(spark, tmp_path):
    observer, told = Observer(), []
    observer.saw_batch = lambda *seen: told.append(seen[3])
    files = Files(spark, tmp_path / "in", "w string")
    files.put([(word,) for word in words(0)])
    counts = group(files.stream(), "w", "key", 2, observer=observer).fold(folds.count())
    run_to_end(counts, tmp_path / "checkpoint", "update")
    eventually(lambda: told)
    assert [report.hot for report in told[0]] == [None, None]


def test_a_query_that_fails_says_so_also_in_its_first_batch(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    files.put([("a",), ("b",)])
    observer = Observer(page=0)
    try:
        failing = F.udf(lambda word: 1 // (len(word) - 1), "int")
        rows = files.stream().withColumn("n", failing("w"))
        counts = group(rows, "w", "key", 2, observer=observer).fold(folds.sum("n"))
        with pytest.raises(Exception, match="ZeroDivision"):
            run_to_end(counts, tmp_path / "checkpoint", "update")
        found = eventually(lambda: snapshot(observer.page))
        (query,) = found.values()
        assert (query["state"], query["newest"]) == ("failed", None)
        assert query["why"].startswith("ZeroDivisionError: ")
    finally:
        observer.close()


def test_a_batch_job_and_a_stream_without_keys_appear_too(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    files.put([(word,) for word in words(0)])
    page = Page()
    try:
        observer = Observer(page=page)
        group(files.batch(), "w", "partial", 3, observer=observer).fold(folds.count()).collect()
        seen = eventually(lambda: snapshot(page).get("partial"))
        assert (seen["state"], seen["newest"]["batch"]) == ("ended", None)
        assert seen["newest"]["hot"][0][0] == "<b>the</b>"
        mapped = balanced_map(
            files.stream(),
            lambda batches: batches,
            "w string",
            key="w",
            workers=2,
            scheme="shuffle",
            observer=observer,
        )
        run_to_end(mapped, tmp_path / "checkpoint", "append")
        others = eventually(lambda: [q for q in snapshot(page).values() if q["name"] != "partial"])
        assert others[0]["newest"]["hot"] is None
    finally:
        page.close()


def test_observers_share_a_page_by_its_port_and_a_taken_one_is_one_sentence():
    first = Observer(page=0)
    second = Observer(page=first.page.port)
    assert second.page is first.page
    first.close()
    first.close()
    with urllib.request.urlopen(second.page.url, timeout=60) as answer:
        assert b"skewless" in answer.read()
    prometheus = Observer(port=0)
    with pytest.raises(SkewlessError, match="live page cannot be served"):
        Observer(page=prometheus.port)
    with pytest.raises(SkewlessError, match="live page cannot be served"):
        Observer(port=0, page=prometheus.port)
    prometheus.close()
    second.close()
    for port in ("a", -1, 70_000, True, 1.5):
        for observed in ({"page": port}, {"port": port}):
            with pytest.raises(SkewlessError, match="is a whole number from 0, which takes a free"):
                Observer(**observed)
    assert repr(Observer()) == "Observer(0 records)"
    with pytest.raises(SkewlessError, match="The log is the path of a file, not 3"):
        Observer(log=3)
    assert Observer().page is None


def test_hot_keys_of_workers_are_put_together():
    def report(worker, hot):
        return WorkerReport(worker, 0, 10, 1, 0, 0.1, 0.0, 1.0, hot)

    seen = [report(0, [["a", 5], [None, 2]]), report(1, [["a", 4], ["b", 3]]), report(2, [])]
    found = [(key.name, key.messages, key.workers) for key in hottest(seen)]
    assert found == [("a", 9, 2), ("b", 3, 1), (None, 2, 1)]
    assert hottest([report(0, None)]) is None


@pytest.mark.parametrize("spec", ["key", "graded", "shuffle", "dynamic", "distribution-aware"])
def test_plans_say_what_they_know_of_single_keys(spec):
    scheme = scheme_of(spec)
    facts = plan_facts(scheme, scheme.plan(4, 0))
    assert facts is None if spec in ("graded", "shuffle") else (facts.keys, facts.widest) == (0, 1)


def test_a_plan_that_splits_keys_says_how_wide():
    scheme = scheme_of("graded-planned")
    plan = scheme.plan(4, 0)._replace(
        head_keys=np.array([7, 9, 11], np.uint64),
        head_starts=np.array([0, 3, 4, 6]),
        head_workers=np.array([0, 1, 2, 3, 2, 2], np.int32),
    )
    assert tuple(vars(plan_facts(scheme, plan)).values()) == (3, 1, 3)
    scheme = scheme_of("dynamic")
    learned = scheme.plan(4, 0)._replace(widths=np.array([4, 2, 1]))
    assert tuple(vars(plan_facts(scheme, learned)).values()) == (3, 2, 4)


@pytest.mark.parametrize("spec", ["d-choices", "w-choices"])
def test_a_plan_whose_keys_are_split_by_the_tasks_says_how_many_it_names(spec):
    scheme = scheme_of(spec)
    learned = scheme.plan(4, 0)._replace(head_keys=np.array([7, 9], np.uint64))
    assert tuple(vars(plan_facts(scheme, learned)).values()) == (2, None, None)
    assert plan_facts(scheme, scheme.plan(4, 0)).keys == 0


def test_a_failure_of_a_query_that_is_none_of_ours_is_not_told():
    listener, told = progress._Listener(), []
    listener.expect("mine", lambda batch: None, lambda *state: told.append(state))

    def happens(run, **metrics):
        seen = SimpleNamespace(observedMetrics=metrics, runId=run, batchId=0)
        listener.onQueryProgress(SimpleNamespace(progress=seen))

    happens("other", else_where=None)
    listener.onQueryIdle(SimpleNamespace(runId="other"))
    listener.onQueryTerminated(SimpleNamespace(runId="other", exception="java.lang.Error: no"))
    assert told == []
    happens("ours", mine=None)
    listener.onQueryIdle(SimpleNamespace(runId="ours"))
    listener.onQueryTerminated(SimpleNamespace(runId="ours", exception="java.lang.Error: no\n at"))
    assert told == [("ours", "waiting", None), ("ours", "failed", "java.lang.Error: no")]
    assert not listener._strangers


PYTHON_FAILURE = """org.apache.spark.sql.streaming.StreamingQueryException: Job aborted
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    raise ValueError
ValueError: no such word: <b>

\tat org.apache.spark.api.python.BasePythonRunner
Caused by: java.io.IOException: gone
"""


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (PYTHON_FAILURE, "ValueError: no such word: <b>"),
        (
            "org.apache.spark.SparkException: gone\n\tat here",
            "org.apache.spark.SparkException: gone",
        ),
        (" ", "Spark does not say why."),
    ],
)
def test_of_a_failure_the_line_that_says_why_is_shown(failure, sentence):
    assert sentence_of(failure) == sentence
