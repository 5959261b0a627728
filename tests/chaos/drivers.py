"""Drivers that die: a stream's driver is killed at random or chosen moments, or two share one."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from skewless.schemes import scheme_of
from skewless.spark.adapt.control import learns_between_batches
from tests.chaos import data
from tests.chaos.cluster import strike, targets
from tests.chaos.draw import ON_SPARK, drawn_setting
from tests.chaos.outcome import Outcome
from tests.chaos.streams import FOUND, LEARNERS, Setting
from tests.faults.test_faults import kill, last_batch, start

JOB = "tests.chaos.stream_job"
LIMIT_S = 300
FILES, ROWS = 6, 250
LEARNING = [name for name in ON_SPARK if learns_between_batches(scheme_of(name))]
CONNECT_PORT = 15002
WHERE = {
    "sink": "between a sink's write and the commit",
    "plan": "between a plan's temporary name and its own",
    "learned": "between a model's temporary name and its own",
}


def killed_drivers(
    drawn: random.Random, number: int, connect: bool = False, kills: int = 5
) -> Outcome:
    """Killed amid batches, each time started again, with another setting where that is allowed.

    connect: the stream runs on a Connect server, and half the time this alone is killed first, so
    that for a while its Python workers outlive it
    """
    what = list(FOUND)[number % len(FOUND)]
    if connect and not port_is_free(CONNECT_PORT):
        return Outcome(f"driver: {what} (Connect): another server has the port")
    outcome = Outcome(f"driver: {what}" + (" (Connect)" if connect else ""))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in range(FILES):
            data.put(folder, file, ROWS)
        setting = drawn_setting(drawn, what, number, connect=connect)
        for kill_number in range(kills):
            setting = drawn_setting(drawn, what, number + kill_number, setting, connect=connect)
            aimed = _aimed(drawn, setting, last_batch(folder, "commits"))
            aimed.save(folder)
            outcome.schemes.add(aimed.scheme)
            _kill_amid_work(folder, aimed, drawn, outcome)
        setting.save(folder)
        end(start(JOB, folder), folder, outcome)
        compare(folder, outcome)
    return outcome


def port_is_free(port: int) -> bool:
    """A local Connect server takes one port, which another may have."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def _aimed(drawn: random.Random, setting: Setting, committed: int) -> Setting:
    """The same, with where it is to be killed, and perhaps slow writes."""
    least = committed + 1 + drawn.randint(0, 2) // 2  # mostly the first batch that runs
    places = ["", "", "sink"]
    if setting.connect:  # plans and models are written in a process of the server's
        places = ["", "sink"]
    elif setting.what in LEARNERS:
        places.append("learned")
    elif setting.what in ("fold", "own fold") or setting.scheme == "proactive":
        places.append("plan")
    pause = drawn.choice(places)
    scheme = setting.scheme
    if pause == "plan" and scheme not in LEARNING:
        scheme = LEARNING[least % len(LEARNING)]
    slow_s = 0.5 if drawn.random() < 0.2 else 0.0
    if pause == "plan":
        least += 1  # the plan of the batch after the one that it was learned from
    return replace(setting, scheme=scheme, pause=pause, least=least, slow_writes_s=slow_s)


def two_drivers(drawn: random.Random, number: int) -> Outcome:
    """Both run the same stream at once; one may be refused by Spark, and a third ends it."""
    what = ("fold", "own fold", "join", "balanced_map")[number % 4]
    outcome = Outcome(f"two drivers: {what}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in range(4):
            data.put(folder, file, ROWS)
        both, setting = [], None
        for _ in range(2):
            setting = drawn_setting(drawn, what, drawn.randrange(99), setting)
            setting.save(folder)
            outcome.schemes.add(setting.scheme)
            both.append(start(JOB, folder))
            time.sleep(1.0 + drawn.random() * 4)
        outcome.faults["second driver"] += 1
        for process in both:
            end(process, folder, outcome, may_fail=True)
        end(start(JOB, folder), folder, outcome)
        compare(folder, outcome)
    return outcome


def until(process: subprocess.Popen[bytes], outcome: Outcome, come: Callable[[], bool]) -> bool:
    """Wait for a moment; whether it came before the process ended."""
    ends_s = time.monotonic() + LIMIT_S
    while process.poll() is None and not come():
        if time.monotonic() > ends_s:
            outcome.hangs += 1
            return False
        time.sleep(0.02)
    return process.poll() is None


def _kill_amid_work(folder: Path, setting: Setting, drawn: random.Random, outcome: Outcome) -> None:
    here, which, wait_s = folder / "here", drawn.random(), drawn.random() * 1.5
    here.unlink(missing_ok=True)
    process = start(JOB, folder)
    if setting.slow_writes_s:
        outcome.faults["slow writes"] += 1
    if setting.pause:
        came = until(process, outcome, here.exists)
        kill(process)
        (outcome.faults if came else outcome.idle)[f"driver, {WHERE[setting.pause]}"] += 1
        return
    until(process, outcome, lambda: last_batch(folder, "offsets") >= setting.least)
    time.sleep(wait_s)
    before = "python worker" if which < 0.35 else "stop" if which < 0.5 else ""
    if before and _amid(process, folder):
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            alive = targets(before, psutil.Process(process.pid))
            strike(before, alive[int(drawn.random() * len(alive))])
            outcome.faults[before] += 1
            time.sleep(wait_s)
    amid, killed = _amid(process, folder), "driver"
    if setting.connect and drawn.random() < 0.5 and _kill_server(process):
        killed = "Connect server, then its client"
    kill(process)
    (outcome.faults if amid else outcome.idle)[killed] += 1


def _kill_server(process: subprocess.Popen[bytes]) -> bool:
    """Kill the Java process alone; whether there was one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children():
            if child.name() == "java":
                child.kill()
                time.sleep(1.0)
                return True
    return False


def _amid(process: subprocess.Popen[bytes], folder: Path) -> bool:
    """Whether a batch has begun that is not committed."""
    return process.poll() is None and last_batch(folder, "offsets") > last_batch(folder, "commits")


def end(
    process: subprocess.Popen[bytes], folder: Path, outcome: Outcome, may_fail: bool = False
) -> None:
    """Await the end, and note an error; where one is allowed, as a refusal."""
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
        outcome.broken.append((folder / "log.txt").read_text(errors="replace")[-4000:])


def compare(folder: Path, outcome: Outcome) -> None:
    """Take the totals that the last driver left."""
    result = folder / "result.json"
    if not result.exists():
        outcome.broken.append("no result")
        return
    outcome.compare(*map(dict, json.loads(result.read_text())))
