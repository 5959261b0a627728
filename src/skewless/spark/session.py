"""A Spark of one's own on this machine, for experiments: one thread for each worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def local_session(threads: int, master: str | None = None) -> Iterator[SparkSession]:
    """A session with that many threads, stopped at the end; it listens on this machine alone.

    master: another Spark to use instead
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = Path(__file__).with_name("log4j2.properties")
    session = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        # Over TCP every stage in Python waits some 40 ms for an acknowledgement.
        .config("spark.python.unix.domain.socket.enabled", str(os.name == "posix").lower())
        .getOrCreate()
    )
    try:
        yield session
    finally:
        session.stop()
