"""A Spark of one's own on this machine, for experiments: one thread for each worker."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skewless.errors import SkewlessError

_MASTERS = ("local", "spark://", "k8s://", "yarn")


@contextmanager
def local_session(threads: int, master: str | None = None) -> Iterator[SparkSession]:
    """A session with that many threads, stopped at the end; it listens on this machine alone.

    master: another Spark to use instead
    """
    if master is not None and not master.startswith(_MASTERS):
        raise SkewlessError(
            f"There is no Spark master '{master}': give local[N], spark://HOST:PORT, "
            "k8s://HOST:PORT or yarn."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = Path(__file__).with_name("log4j2.properties")
    builder = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        # Over TCP every stage in Python waits some 40 ms for an acknowledgement.
        .config("spark.python.unix.domain.socket.enabled", str(os.name == "posix").lower())
    )
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise SkewlessError(
            "Spark did not start: it needs Java 17 or later and a master that can be reached; "
            "what it wrote on stderr says more."
        ) from error
    with _interrupted_in_one_way():
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _interrupted_in_one_way() -> Iterator[None]:
    """Ctrl-C ends in KeyboardInterrupt, whatever Spark makes of it, and without pages of logs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    # Spark's own handler talks to the JVM, perhaps in the middle of another talk: that may fail.
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except Exception:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)
