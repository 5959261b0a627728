"""One Spark session for all tests: starting a JVM takes longer than most of them.

With SKEWLESS_CONNECT=1 it is a session of a local Connect server instead; test_connect.py runs the
tests marked `connect` that way in a process of their own, since one process holds one kind of
session.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skewless.errors import SkewlessError
from skewless.spark.input.version import HAS_CHECKSUMS
from tests import sparks

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
    **sparks.SETTINGS,
}
ON_CONNECT = os.environ.get("SKEWLESS_CONNECT") == "1"


# What tests ask of Spark itself, by a part of their names: the oldest Spark that has it.
NEEDS = {
    "collat": (4, 0),
    "COLLAT": (4, 0),
    "UTF8_LCASE": (4, 0),
    "groups by no such value": (4, 0),  # variants
    "test_what_spark_does_not_group_by_is_no_key": (4, 0),  # variants
    "spark_makes[b-": (4, 1),  # hands binary keys back as bytes
    "test_balanced_map.py": (4, 0),
    "test_connect.py": (4, 0),  # PySpark comes with a server from then on
    "test_join_fuzz.py": (4, 0),  # collations
    "test_map_costs.py": (4, 0),
    "test_restarts_of_streams_leave_neither_listeners": (4, 1),
    "test_folds_that_never_run_take_no_threads": (4, 2),  # the JVM starts one for each there
    "test_per_worker.py": (4, 0),
    "test_union.py": (4, 0),
    "test_streams_keep_their_state_in_rocksdb_unless": (4, 0),  # per_worker
    "test_state_is_even_and_a_restart_with_another_plan": (4, 0),  # reads state as a table
    "[in a map]": (4, 1),  # collations that trim
    "test_apply_takes_what_apply_in_arrow_takes": (4, 0),
    "test_columns_go_by_place_where_spark_is_told_so": (4, 0),
    "test_balanced_map_takes_what": (4, 0),
    "test_the_code_for_balanced_map_runs_too": (4, 0),
    "test_columns_may_have_any_name_also_twice": (4, 0),  # balanced_map
    "not 'n nosuch'": (4, 0),  # balanced_map
    "The share of the first wave is a number": (4, 0),  # balanced_map
    "test_a_processor_": (4, 0),  # per_worker
    "test_state_per_worker_stays_where_it_is_and_says_why": (4, 0),
    "test_a_sample_thins_out_alike_in_all_tasks": (4, 0),  # toArrow
    "be a key]": (4, 0),  # variants
    "has no digest]": (4, 0),  # reads the type of calendar intervals
    "[calendar]": (4, 0),
    "of_spark[map": (4, 0),  # Spark groups by maps
    "each_key_once[map": (4, 0),
    "one_worker[map": (4, 0),
    "test_keys_of_inner_structure_keep_their_state": (4, 0),
    "[struct of map]": (4, 0),
    "test_unequal.py": (4, 0),
    "splits_by_a_plan_or_learns_one": (4, 0),
    "test_there_is_one_routing_shuffle_and_one_merge_shuffle": (4, 1),  # repartitionById
    "test_facts.py": (4, 1),
    "before_it_starts[state]": (4, 1),  # per_worker, also on Connect
    "test_snippets.py": (4, 1),  # every capability in one
    "test_live_page.py": (4, 1),  # streams by schemes that learn
}
collect_ignore = [
    name for name, oldest in NEEDS.items() if name.endswith(".py") and oldest > sparks.SPARK
]


def pytest_collection_modifyitems(items):
    for item in items:
        for part, oldest in NEEDS.items():
            if part in item.nodeid and oldest > sparks.SPARK:
                needed = ".".join(map(str, oldest))
                item.add_marker(pytest.mark.skip(reason=f"needs Spark {needed} or later"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Before 4.1 every scheme that counts is refused on streams: that is no failure.

    Nor is it what says itself that it needs Spark 4.0, before that.
    """
    try:
        return (yield)
    except SkewlessError as error:
        if sparks.SPARK < (4, 0) and " needs Spark 4.0 or later, " in str(error):
            pytest.skip("balanced_map and per_worker need Spark 4.0 or later")
        if sparks.SPARK < HAS_CHECKSUMS and "compares checksums of its shuffles" in str(error):
            pytest.skip("counts what it sends on a stream, which needs Spark 4.1 or later")
        raise


def pytest_configure(config):
    config.addinivalue_line("markers", "connect: runs on a Spark Connect server as well")


def on_a_port_of_its_own(builder: SparkSession.Builder) -> SparkSession.Builder:
    """A local Connect server; its usual port may be that of another Spark, also being tested."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)
    return builder.config("spark.connect.grpc.binding.port", str(port)).remote("local[2]")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = Path(__file__).parents[2]
    paths = [str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = on_a_port_of_its_own(builder) if ON_CONNECT else builder.master("local[2]")
    session = builder.getOrCreate()
    assert ("connect" in type(session).__module__) == ON_CONNECT
    yield session
    session.stop()
