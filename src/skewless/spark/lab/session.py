"""A Spark of one's own on this machine, for experiments: one thread for each worker."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skewless.errors import SkewlessError
from skewless.spark.lab.java import check_java
from skewless.spark.observe.progress import sentence_of

MOST_THREADS = 1000
_STACK = "-Xss8m"  # Spark matches errors of a stream by a regular expression that is recursive
DAEMON = Path(__file__).parent / "worker_path" / "skewless_worker_daemon.py"
_MASTER = re.compile(
    r"local(\[\s*([1-9]\d*|\*)\s*(,\s*\d+\s*)?\])?|local-cluster\[[\d\s,]+\]|(spark|k8s)://.+|yarn"
)


@contextmanager
def local_session(
    threads: int, master: str | None = None, jars: Sequence[Path] = ()
) -> Iterator[SparkSession]:
    """A session with that many threads, stopped at the end; it listens on this machine alone.

    master: another Spark to use instead
    jars: what Spark is to load besides its own
    """
    if master is None and threads > MOST_THREADS:
        raise SkewlessError(
            f"A Spark of one's own runs a thread for each worker, at most {MOST_THREADS:,}, not "
            f"{threads:,}: give fewer workers, or the master of a cluster."
        )
    if master is not None and not _MASTER.fullmatch(master):
        raise SkewlessError(
            f"There is no Spark master '{master}': give local[N], spark://HOST:PORT, "
            "k8s://HOST:PORT or yarn."
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    quiet = Path(__file__).with_name("log4j2.properties")
    builder = (
        SparkSession.builder.master(master or f"local[{threads}]")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet} {_STACK}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        # Over TCP every stage in Python waits some 40 ms for an acknowledgement.
        .config("spark.python.unix.domain.socket.enabled", str(os.name == "posix").lower())
    )
    if (master or "local").startswith("local"):  # elsewhere workers write into files of their own
        builder = builder.config("spark.python.daemon.module", DAEMON.stem)
        path = os.pathsep.join(filter(None, (str(DAEMON.parent), os.environ.get("PYTHONPATH"))))
        builder = builder.config("spark.executorEnv.PYTHONPATH", path)
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    with _ended_on_request() as requested:
        check_java()
        session = _started(builder)
        with _interrupted_in_one_way():  # once Spark has put its own handler there
            try:
                requested()
                yield session
            except (PySparkException, Py4JJavaError) as error:
                # Py4J says first what it called, and then what that raised.
                why = sentence_of(str(error).rpartition("\n: ")[2])
                raise SkewlessError(f"Spark failed: {why}") from error
            finally:
                session.stop()


def beside(act: Callable[[], None]) -> Future[None]:
    """Do it in a thread of its own, so that Ctrl-C interrupts this one, and no talk with the JVM.

    Py4J closes the connections of other threads too when it is interrupted, and if it fails at
    that, the interrupt comes out as some other error.
    """
    done: Future[None] = Future()

    def run() -> None:
        try:
            act()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="skewless-beside", daemon=True).start()
    return done


def _started(builder: SparkSession.Builder) -> SparkSession:
    """The session; if its start is interrupted or fails, no process of it is left behind."""
    before = _children()
    try:
        return builder.getOrCreate()
    except BaseException as error:
        for process in _children() - before:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if isinstance(error, PySparkException | Py4JError):
            raise SkewlessError(
                "Spark did not start: it needs Java 17 or later and a master that can be reached; "
                "what it wrote on stderr says more."
            ) from error
        raise


def _children() -> set[int]:
    """The processes that this one started, as far as the system tells."""
    try:
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return set()
    pairs = (line.split() for line in listed.stdout.splitlines())
    return {int(process) for process, parent in pairs if int(parent) == os.getpid()}


@contextmanager
def _ended_on_request() -> Iterator[Callable[[], None]]:
    """A request to end (SIGTERM) ends the session too, then the process with the code for that.

    What it yields ends both if Spark swallowed the request, as it may while it starts. The same for
    Ctrl-C while it starts, which ends in KeyboardInterrupt.
    """
    code = 0

    def requested() -> None:
        if code == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if code:
            sys.exit(code)

    if threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal code
        code = 128 + number
        logging.disable(logging.CRITICAL)
        requested()

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        logging.disable(logging.NOTSET)
        requested()  # whatever Spark made of the exit on its way


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
