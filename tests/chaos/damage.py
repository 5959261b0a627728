"""Damaged files in a checkpoint, and disks that take no more: exact, or one sentence."""

from __future__ import annotations

import contextlib
import random
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.spark.adapt.control import Control
from skewless.spark.adapt.facts import StateFacts
from skewless.spark.adapt.plans import Learned, StreamFolder, empty_report, stream_folder
from skewless.spark.report.codec import flatten
from tests.chaos.outcome import Outcome

SPECS = ("d-choices", "dynamic:rate=50,keys=50", "graded", "partial", "distribution-aware:learn=9")
FACTS = StateFacts(("k string",), ("Count()",))


def learned(folder: Path, spec: str, drawn: random.Random) -> StreamFolder:
    """The folder of a stream that ran a few batches."""
    scheme, workers = scheme_of(spec), drawn.randint(2, 8)
    mine = stream_folder(str(folder), scheme, workers, 1).resume()
    mine.claim_state(FACTS)
    Control(mine).begin(mine.first_plan())
    for batch in range(3):
        before = mine.settle(batch)
        tally = scheme.reserve(scheme.tally(before.plan, 0), 200)
        keys = np.random.default_rng(batch).zipf(1.5, 200).astype(np.uint64)
        scheme.send(before.plan, tally, keys, np.arange(200.0), np.empty(200, np.int32))
        report = scheme.report(before.plan, tally)
        plan = scheme.replan(before.plan, report, Feedback.none(workers))
        after = Learned(plan, empty_report(scheme, plan), 0, 1, before.loads)
        mine.write(batch + 1, after)
    return mine


def restart(folder: StreamFolder) -> list[str]:
    """All that a restart reads and writes; what batches run with that began before, as text."""
    mine = stream_folder(folder.checkpoint, folder.scheme, folder.workers, folder.seed).resume()
    mine.claim_state(FACTS)
    Control(mine).begin(mine.first_plan())
    read = []
    for batch in (2, 3, 4):
        found = mine.settle(batch)
        mine.used(batch), mine.before(batch)
        assert found.loads.size == mine.workers, "a plan for other workers"
        mine.write(batch + 1, found)
        if batch < 4:  # the last runs with what was just written
            read += [repr(np.asarray(part).tolist()) for part in flatten(found)]
    return read


def damage(path: Path, drawn: random.Random) -> str:
    data = bytearray(path.read_bytes())
    if drawn.random() < 0.5:
        path.write_bytes(bytes(data[: drawn.randrange(len(data))]))
        return "truncated file"
    data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
    path.write_bytes(bytes(data))
    return "flipped bit"


def attempt(outcome: Outcome, action: Callable[[], object]) -> bool:
    """Do it: fine, or one sentence; whether it was fine."""
    try:
        action()
        return True
    except SkewlessError as error:
        outcome.refusals += 1
        if "\n" in str(error) or not str(error).endswith("."):
            outcome.broken.append(f"not one sentence: {error}")
    except Exception:
        outcome.broken.append(traceback.format_exc(limit=-3))
    return False


def damaged_files(drawn: random.Random, count: int = 50) -> Outcome:
    """That many files, each damaged in a checkpoint that was whole before."""
    outcome = Outcome("damaged files")
    with tempfile.TemporaryDirectory() as name:
        folder = learned(Path(name), drawn.choice(SPECS), drawn)
        whole = {p: p.read_bytes() for p in folder.base.rglob("*") if p.is_file()}
        expected = restart(folder)
        _put_back(folder, whole)
        for _ in range(count):
            victim = drawn.choice(sorted(whole))
            outcome.faults[damage(victim, drawn)] += 1
            read: list[str] = []
            fine = attempt(outcome, lambda read=read: read.extend(restart(folder)))
            # Another number in a file of facts may be another setting; a plan has a checksum.
            if fine and victim.suffix == ".npz" and read != expected:
                outcome.broken.append(f"{victim} was misread")
            _put_back(folder, whole)
        restart(folder)
    return outcome


def _put_back(folder: StreamFolder, whole: dict[Path, bytes]) -> None:
    for path in folder.base.rglob("*"):
        if path.is_file() and path not in whole:
            path.unlink()
    for path, data in whole.items():
        path.write_bytes(data)


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "256k") -> Iterator[Path]:
    """A disk of that size; raises PermissionError where one may not be mounted."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
    )
    if done.returncode:
        raise PermissionError(done.stderr.decode())
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def bad_disks(drawn: random.Random) -> Outcome:
    """A disk that is full, then one that is read-only, then whole again: goes on."""
    outcome = Outcome("full and read-only disk")
    with tempfile.TemporaryDirectory() as name, small_disk(Path(name)) as disk:
        folder = learned(disk / "checkpoint", drawn.choice(SPECS), drawn)
        left = set(folder.base.rglob(".*"))
        filler = disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        outcome.faults["full disk"] += 1
        fine = attempt(outcome, lambda: folder.write(50, folder.used(3)))
        if fine:
            outcome.broken.append("a full disk took a plan")
        filler.unlink()
        if set(folder.base.rglob(".*")) != left:
            outcome.broken.append("a full disk keeps parts of files")
        attempt(outcome, lambda: restart(folder))
        outcome.faults["read-only disk"] += 1
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        attempt(outcome, lambda: folder.write(60, folder.used(3)))
        attempt(outcome, lambda: folder.settle(70))
        other = stream_folder(folder.checkpoint, folder.scheme, folder.workers + 1, 1)
        attempt(outcome, other.resume)
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        restart(folder)
    return outcome
