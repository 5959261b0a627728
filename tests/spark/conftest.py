"""One Spark session for all tests: starting a JVM takes longer than most of them.

With SKEWLESS_CONNECT=1 it is a session of a local Connect server instead; test_connect.py runs the
tests marked `connect` that way in a process of their own, since one process holds one kind of
session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "3",
    "spark.python.worker.reuse": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
ON_CONNECT = os.environ.get("SKEWLESS_CONNECT") == "1"


def pytest_configure(config):
    config.addinivalue_line("markers", "connect: runs on a Spark Connect server as well")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(__file__).parents[2]
    paths = [str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.remote("local[2]") if ON_CONNECT else builder.master("local[2]")
    session = builder.getOrCreate()
    assert ("connect" in type(session).__module__) == ON_CONNECT
    yield session
    session.stop()
