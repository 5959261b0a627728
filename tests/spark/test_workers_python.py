"""Whether Spark's workers have the package is found out before any job, and said in a sentence."""

import contextlib
import os
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skewless._version import __version__
from skewless.errors import SkewlessError
from skewless.spark.input import workers_python
from skewless.spark.input.workers_python import check_workers_python

WITHOUT = """
from skewless.errors import SkewlessError
from skewless.spark.lab.session import local_session
from skewless.spark import diagnose, group

with local_session(2) as spark:
    rows = spark.range(9)
    for ask in (lambda: group(rows, "id", "partial", 2), lambda: diagnose(rows, "id", 2)):
        try:
            ask()
        except SkewlessError as error:
            print(error)
"""


STOPPED = """
from skewless.apps import top_k
from skewless.errors import SkewlessError
from skewless.spark.lab.session import local_session
from skewless.spark import balanced_map, diagnose, group, route, verify

with local_session(1) as spark:
    rows = spark.range(9)
for ask in (
    lambda: group(rows, "id"),
    lambda: route(rows, "id"),
    lambda: balanced_map(rows, lambda batches: batches, "id long", key="id"),
    lambda: diagnose(rows, "id"),
    lambda: verify(rows, rows),
    lambda: top_k(rows, "id"),
):
    try:
        ask()
    except SkewlessError as error:
        print(error)
"""


def test_workers_with_the_same_version_will_do(spark):
    check_workers_python(spark, __version__)


def test_one_application_is_asked_once(spark, monkeypatch):
    monkeypatch.setattr(workers_python, "_ASKED", set())
    asked = []
    monkeypatch.setattr(workers_python, "_ask", lambda spark, version: asked.append(spark))
    for session in (spark, spark.newSession(), spark.newSession()):  # as in `foreachBatch`
        check_workers_python(session, __version__)
    assert asked == [spark]


def test_another_version_at_the_workers_is_one_sentence(spark, monkeypatch):
    monkeypatch.setattr(workers_python, "_ASKED", set())
    with pytest.raises(SkewlessError, match=f"has skewless {__version__}, where the driver has 9"):
        check_workers_python(spark, "9.9.9")


class Slow:
    """A session whose only job ends when two of its kind have begun, or not at all."""

    begun = threading.Barrier(2)

    def __init__(self):
        self.session_id = uuid.uuid4().hex

    def range(self, count):
        return self

    def mapInArrow(self, function, schema):
        return self

    def collect(self):
        with contextlib.suppress(threading.BrokenBarrierError):
            Slow.begun.wait(0.3)
        return [{"version": __version__}]


def test_sessions_of_two_threads_may_ask_at_once():
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(check_workers_python, Slow(), __version__) for _ in range(2)]
    assert [each.result() for each in asked] == [None, None]


def test_a_stopped_session_is_one_sentence():
    ran = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True)
    assert ran.stdout.count("The DataFrame's Spark session was stopped: start another") == 6, (
        ran.stderr
    )


def test_workers_without_the_package_are_one_sentence(tmp_path):
    (tmp_path / "skewless.py").write_text("raise ModuleNotFoundError('No module named skewless')")
    worker = tmp_path / "python"
    worker.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    worker.chmod(0o755)
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYSPARK_PYTHON": str(worker), "PYTHONPATH": source}
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True
    )
    assert ran.stdout.count("has no skewless (ModuleNotFoundError") == 2, ran.stderr
    assert ran.stdout.count("\n") == 2
