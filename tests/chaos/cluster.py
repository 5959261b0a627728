"""A small cluster, and a hand that kills or stops its processes at random moments."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pyspark
from pyspark.sql import SparkSession

from tests.chaos.outcome import Outcome

EXECUTORS = 3
DAEMON = "tests.chaos.daemon"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # JVMs that start fast
FAULTS = {"executor": 10, "python worker": 7, "daemon": 1, "stop": 1}
LEAST_FAULTS, MOST_FAULTS = 12, 18  # in a round
LONGEST_PAUSE_S, STOPPED_S, LOOK_S = 1.5, 2.0, 0.1
TWO_AT_ONCE = 0.4


def start() -> SparkSession:
    """Three executors of one core, that may die as often as it takes."""
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.python.daemon.module": DAEMON,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        # Spark gives up a job after four faults of one kind; here there may be more.
        "spark.task.maxFailures": "100",
        "spark.stage.maxConsecutiveAttempts": "100",
        "spark.deploy.maxExecutorRetries": "-1",
    }
    builder = SparkSession.builder.master(f"local-cluster[{EXECUTORS},1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def targets(fault: str, of: psutil.Process | None = None) -> list[psutil.Process]:
    """The processes of this kind that are alive now below `of`, or below this one."""
    executors, daemons, workers = [], [], []
    for process in (of or psutil.Process()).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if "CoarseGrainedExecutorBackend" in line:
                executors.append(process)
            elif f"-m {DAEMON}" in line:  # the driver's line has it too, as a setting
                above = process.parent()
                (daemons if above and above.name() == "java" else workers).append(process)
    kinds = {"executor": executors, "daemon": daemons, "python worker": workers}
    return kinds.get(fault, [*executors, *workers])


def strike(fault: str, chosen: psutil.Process) -> None:
    """Kill a process, or stop it for a while."""
    if fault == "stop":
        chosen.suspend()
        time.sleep(STOPPED_S)
        chosen.resume()
    else:
        chosen.send_signal(signal.SIGKILL)


class Hand:
    """Does its faults to the processes below this one while a round runs."""

    def __init__(
        self, spark: SparkSession, drawn: random.Random, outcome: Outcome, most: int | None = None
    ) -> None:
        self._status, self._outcome = spark.sparkContext.statusTracker(), outcome
        kinds, weights = list(FAULTS), list(FAULTS.values())
        faults = drawn.choices(kinds, weights, k=drawn.randint(LEAST_FAULTS, MOST_FAULTS))[:most]
        self._plan = [(fault, drawn.random(), drawn.random()) for fault in faults]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Hand:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _busy(self) -> bool:
        """Whether tasks run now."""
        stages = map(self._status.getStageInfo, self._status.getActiveStageIds())
        return any(stage and stage.numActiveTasks for stage in stages)

    def _ready(self, fault: str) -> bool:
        """Whether a fault would hit work, and leave some executor to go on with it."""
        alive = len(targets(fault)) if self._busy() else 0
        return alive > (1 if fault == "executor" else 0)

    def _work(self) -> None:
        for fault, wait, which in self._plan:
            for pause_s in (wait * LONGEST_PAUSE_S, 0.0):  # into the work, not between two stages
                while not self._over.is_set() and not self._ready(fault):
                    time.sleep(LOOK_S)
                if self._over.wait(pause_s):
                    return
            alive = targets(fault)
            if not alive:
                continue
            counted = self._outcome.faults if self._busy() else self._outcome.idle
            # Two executors at once now and then, so that none is left that has what the others had.
            several = 2 if fault == "executor" and wait < TWO_AT_ONCE else 1
            first = int(which * len(alive))
            for chosen in (alive + alive)[first : first + min(several, len(alive))]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    strike(fault, chosen)
                    counted[fault] += 1
