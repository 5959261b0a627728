"""One broker for all tests with Kafka, and one Spark with the connector.

They run in a process of their own (`make kafka`): a process has one JVM, whose jars are chosen when
it starts.
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from show.broker import Broker

from skewless.spark.lab.connector import connector_jars
from skewless.spark.lab.session import local_session

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def broker():
    # It creates topics, as brokers do by default, and keeps messages: a test gives them times of
    # years ago, and half a minute after its start a broker removes what is older than a week.
    with Broker(auto_create_topics_enable="true", log_retention_ms="-1") as running:
        yield running


@pytest.fixture(scope="session")
def spark():
    assert SparkSession.getActiveSession() is None, "run tests/kafka apart from other Spark tests"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with local_session(2, jars=connector_jars()) as session:
        session.conf.set("spark.sql.shuffle.partitions", "2")
        yield session


@pytest.fixture
def topics(broker):
    """A topic for messages and a compacted one for counts, new for each test."""
    mark = uuid.uuid4().hex[:8]
    broker.create(f"in-{mark}", 2)
    broker.create(f"out-{mark}", 2, cleanup_policy="compact")
    return f"in-{mark}", f"out-{mark}"
