"""The local session's Python workers: silent when Spark hangs up, and heard when they fail."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import psutil
import pyspark
import pytest

from skewless.spark.lab.session import DAEMON
from skewless.spark.lab.worker_path.skewless_worker_daemon import HUNG_UP, until_hung_up
from tests import sparks

# What a worker writes, how it fails, and that it dies come through as from PySpark's own daemon.
SESSION = """
import os, sys
from skewless.spark.lab.session import local_session

def says(batches):
    print("said by a worker of", sys.modules["__main__"].__file__, file=sys.stderr)
    yield from batches

def fails(batches):
    raise BrokenPipeError("of the user's own")

def dies(batches):
    os._exit(3)

with local_session(1) as spark:
    for act in (says, fails, dies):
        try:
            spark.range(1).mapInArrow(act, "id long").collect()
        except Exception as error:
            print(error)
"""


def said_when_spark_hangs_up(daemon, folder):
    """Start a daemon and a worker as Spark does, close the worker's socket, and hear it out."""
    path = os.pathsep.join([str(DAEMON.parent), str(Path(pyspark.__file__).parents[1])])
    environment = {
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "YES",
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder),
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        "SPARK_REUSE_WORKER": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", daemon, "pyspark.worker"], env=os.environ | environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with process, socket.socket(socket.AF_UNIX) as spark:
        (length,) = struct.unpack(">i", process.stdout.read(4))
        spark.connect(process.stdout.read(length))
        (number,) = struct.unpack(">i", spark.recv(4))
        worker = psutil.Process(number)
        spark.close()
        worker.wait(60)
        process.stdin.close()  # tells the daemon to end
        return process.stderr.read().decode()


@pytest.mark.skipif(sparks.SPARK < (4, 1), reason="before Spark 4.1, no worker says anything there")
def test_a_worker_says_nothing_when_spark_hangs_up(tmp_path):
    assert "BrokenPipeError" in said_when_spark_hangs_up("pyspark.daemon", tmp_path), "mended"
    assert said_when_spark_hangs_up(DAEMON.stem, tmp_path) == ""


def test_the_session_has_that_daemon_and_true_errors_come_through():
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", SESSION], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f"said by a worker of {DAEMON}" in done.stderr
    assert "BrokenPipeError: of the user's own" in done.stdout
    assert "Python worker exited unexpectedly" in done.stdout


FAILING = """
import gzip, sys
from skewless.errors import SkewlessError
from skewless.spark.lab.session import local_session

zipped = gzip.compress(b"a b\\n" * 1000)
with open("cut.gz", "wb") as file:
    file.write(zipped[: len(zipped) // 2])
for act in (
    lambda spark: spark.sql("select raise_error('of the user')").collect(),
    lambda spark: spark.read.text("cut.gz").write.parquet("out"),
):
    try:
        with local_session(1) as spark:
            act(spark)
    except SkewlessError as error:
        print(error)
"""


def test_what_spark_fails_with_is_one_sentence(tmp_path):
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", FAILING], env=os.environ | {"PYTHONPATH": source}, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("Spark failed: ")
    assert "of the user" in first
    assert second.startswith("Spark failed: org.apache.spark.SparkException: ")


def test_only_the_end_of_the_connection_is_no_error():
    def raising(error):
        def worker(socket, authenticated):
            raise error

        return until_hung_up(worker)

    assert until_hung_up(lambda socket, authenticated: 5)(None, True) == 5
    for error in (BrokenPipeError(), ConnectionResetError(), EOFError()):
        assert raising(error)(None, True) == HUNG_UP
    for error in (OSError("full"), ValueError("odd"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            raising(error)(None, True)
