"""A stream whose checkpoint's disk becomes full or read-only amid the work, and whole again."""

from __future__ import annotations

import contextlib
import random
import subprocess
import tempfile
import time
from pathlib import Path

from tests.chaos import data
from tests.chaos.damage import small_disk
from tests.chaos.draw import drawn_setting
from tests.chaos.drivers import FILES, JOB, ROWS, compare, end, until
from tests.chaos.outcome import Outcome
from tests.faults.test_faults import last_batch, start

SIZE = "8m"


def bad_disk_under_a_stream(drawn: random.Random, number: int) -> Outcome:
    """The driver may end with an error; once the disk is whole, another goes on exactly."""
    what = ("fold", "own fold", "balanced_map", "per_worker")[number % 4]
    outcome = Outcome(f"bad disk: {what}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in range(FILES):
            data.put(folder, file, ROWS)
        disk = folder / "checkpoint"
        disk.mkdir()
        with small_disk(disk, SIZE):
            setting = drawn_setting(drawn, what, number)
            for fault in ("full disk", "read-only disk"):
                setting = drawn_setting(drawn, what, number, setting)
                outcome.schemes.add(setting.scheme)
                setting.save(folder)
                done = last_batch(folder, "commits")
                process = start(JOB, folder)
                running = until(process, outcome, lambda d=done: last_batch(folder, "offsets") > d)
                broken = _break(disk, fault, process)
                (outcome.faults if running and broken else outcome.idle)[fault] += 1
                end(process, folder, outcome, may_fail=True)
                _mend(disk, fault)
            end(start(JOB, folder), folder, outcome)
            compare(folder, outcome)
    return outcome


def _break(disk: Path, fault: str, process: subprocess.Popen[bytes]) -> bool:
    """Whether the disk is as it should not be while the driver runs."""
    if fault == "read-only disk":
        # A file that is open for writing forbids it, and not for long.
        while process.poll() is None:
            done = subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True)
            if not done.returncode:
                return True
            time.sleep(0.01)
        return False
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return process.poll() is None


def _mend(disk: Path, fault: str) -> None:
    if fault == "read-only disk":
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    (disk / "filler").unlink(missing_ok=True)
