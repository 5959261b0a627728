"""Drivers that die: a stream's driver is killed at random moments, or two share a checkpoint."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

from tests.chaos.jobs import ON_SPARK
from tests.chaos.outcome import Outcome
from tests.faults.test_faults import kill, last_batch, start, write_stream

JOB = "tests.faults.driver_job"
LIMIT_S = 300


def killed_drivers(drawn: random.Random, kills: int = 2) -> Outcome:
    """Killed amid batches, each time started again with another setting."""
    outcome = Outcome("driver of a stream")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = write_stream(folder, files=5, count=800)
        for _ in range(kills):
            _draw_setting(folder, drawn)
            process = start(JOB, folder)
            _kill_amid_work(process, folder, drawn, outcome)
        _draw_setting(folder, drawn)
        _end(start(JOB, folder), folder, outcome)
        _compare(folder, expected, outcome)
    return outcome


def two_drivers(drawn: random.Random) -> Outcome:
    """Both run the same stream at once; one may be refused by Spark, and a third ends it."""
    outcome = Outcome("two drivers")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = write_stream(folder, files=4, count=500)
        both = []
        for _ in range(2):
            _draw_setting(folder, drawn)
            both.append(start(JOB, folder))
            time.sleep(drawn.random() * 4)
        outcome.faults["second driver"] += 1
        for process in both:
            _end(process, folder, outcome, may_fail=True)
        _end(start(JOB, folder), folder, outcome)
        _compare(folder, expected, outcome)
    return outcome


def _draw_setting(folder: Path, drawn: random.Random) -> None:
    setting = [drawn.choice(ON_SPARK), drawn.randint(2, 6), drawn.randint(0, 9)]
    (folder / "setting.json").write_text(json.dumps(setting))


def _kill_amid_work(
    process: subprocess.Popen[bytes], folder: Path, drawn: random.Random, outcome: Outcome
) -> None:
    wait_s, ends_s = drawn.random() * 1.5, time.monotonic() + LIMIT_S
    before = last_batch(folder, "commits")
    while process.poll() is None and last_batch(folder, "offsets") <= before:
        if time.monotonic() > ends_s:
            outcome.hangs += 1
            break
        time.sleep(0.02)
    time.sleep(wait_s)
    amid = process.poll() is None and last_batch(folder, "offsets") > last_batch(folder, "commits")
    kill(process)
    (outcome.faults if amid else outcome.idle)["driver"] += 1


def _end(
    process: subprocess.Popen[bytes], folder: Path, outcome: Outcome, may_fail: bool = False
) -> None:
    try:
        code = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        outcome.hangs += 1
        return
    finally:
        kill(process)
    if code and may_fail:
        outcome.refusals += 1
    elif code:
        outcome.broken.append((folder / "log.txt").read_text()[-2000:])


def _compare(folder: Path, expected: dict[tuple[int, str], int], outcome: Outcome) -> None:
    result = folder / "result.json"
    if not result.exists():
        outcome.broken.append("no result")
        return
    found: dict[tuple[int, str], int] = {}
    for start_s, word, count in json.loads(result.read_text()):
        found[start_s, word] = found.get((start_s, word), 0) + count
    outcome.compare(found, expected)
