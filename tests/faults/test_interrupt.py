"""Ctrl-C amid a command on Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.test_faults import kill


@pytest.mark.timeout(900)
def test_an_interrupted_command_ends_soon_and_without_a_traceback(tmp_path):
    texts, checkpoint = tmp_path / "texts", tmp_path / "checkpoint"
    texts.mkdir()
    (texts / "a.txt").write_text("a rose is a rose is a rose\n" * 20_000)
    errors = tmp_path / "errors.txt"
    program = Path(sys.executable).with_name("skewless")
    what = ["--folder", texts, "--checkpoint", checkpoint, "--scheme", "key", "--workers", "1"]
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [program, "run", *what, "--delay-ms", "1"], stdout=subprocess.DEVNULL, stderr=stderr
        )
    try:
        deadline = time.monotonic() + 240
        while not (checkpoint / "offsets" / "0").exists():  # the first batch, which takes minutes
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert not psutil.wait_procs(family, timeout=60)[1]
        assert "Traceback" not in errors.read_text()
    finally:
        kill(process)


def is_java(process):
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def is_spark(process):
    """Its JVM, not the Java that was asked for its version before."""
    try:
        return is_java(process) and "-version" not in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def end_amid_start(number, code, wanted, **more):
    """Send a command a signal once it has such children; neither is left behind."""
    program = Path(sys.executable).with_name("skewless")
    what = ["--stream", "zipf:z=1,keys=9,messages=9", "--scheme", "key", "--workers", "1"]
    process = subprocess.Popen(
        [program, "run", *what],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **more},
    )
    try:
        deadline = time.monotonic() + 120
        family: list[psutil.Process] = []
        while not family and time.monotonic() < deadline:
            assert process.poll() is None
            started = psutil.Process(process.pid).children(recursive=True)
            family = [child for child in started if wanted(child)]
            time.sleep(0.01)
        assert family
        process.send_signal(number)
        assert process.wait(120) == code
        assert not psutil.wait_procs(family, timeout=60)[1]
    finally:
        kill(process)


ENDS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@pytest.mark.timeout(600)
@ENDS
def test_a_command_that_ends_while_spark_starts_leaves_no_process_behind(number, code):
    end_amid_start(number, code, is_spark)


@pytest.mark.timeout(600)
@ENDS
def test_a_command_that_ends_while_java_is_asked_for_its_version_does_too(tmp_path, number, code):
    slow = tmp_path / "bin" / "java"
    slow.parent.mkdir()
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    slow.chmod(0o755)
    end_amid_start(number, code, is_java, JAVA_HOME=str(tmp_path))
