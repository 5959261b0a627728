"""Ctrl-C amid a command on Spark."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.test_faults import kill

COMMAND = (
    "run --stream zipf:z=1.2,keys=100,messages=200000 --scheme partial --workers 2 --batches 20 "
    "--delay-ms 0.2 --log"
)


@pytest.mark.timeout(900)
def test_an_interrupted_command_ends_soon_and_without_a_traceback(tmp_path):
    log, errors = tmp_path / "log.jsonl", tmp_path / "errors.txt"
    program = Path(sys.executable).with_name("skewless")
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [program, *COMMAND.split(), log], stdout=subprocess.DEVNULL, stderr=stderr
        )
    try:
        deadline = time.monotonic() + 240
        while not (log.exists() and log.read_text()):
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert not psutil.wait_procs(family, timeout=30)[1]
        assert "Traceback" not in errors.read_text()
    finally:
        kill(process)
