"""Run as a program: the driver of a stream that another process kills and starts again.

`python -m tests.chaos.stream_job FOLDER` goes on from its checkpoint, as `setting.json` says; at
the end it writes `result.json` with what was found and what a plain job finds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from skewless.apps import learning
from skewless.spark.adapt import files
from tests.chaos.cluster import DAEMON, SHORT_LIVED
from tests.chaos.streams import Setting, Stream, pause

NAMING = (files, learning)  # all that write plans and models


class Watched:
    """The module `os`, but for the step that makes a file appear under its name."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self.folder, self.setting = folder, setting

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _before(self, where: str, target: Path) -> None:
        time.sleep(self.setting.slow_writes_s)
        number = Path(target).stem
        if where == "learned" or Path(target).parent.name == "plans":
            pause(self.folder, self.setting, where, int(number) if number.isdigit() else -1)

    def link(self, part: Path, target: Path) -> None:
        self._before("plan", target)
        os.link(part, target)

    def replace(self, part: Path, target: Path) -> None:
        self._before("learned", target)
        os.replace(part, target)


def watch(watched: Watched) -> None:
    """Let the modules that give files their names do so by way of this one."""
    for module in NAMING:
        module.os = watched


def session(connect: bool) -> SparkSession:
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.python.daemon.module": DAEMON,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.task.maxFailures": "100",
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    # A local master may say how often a task may fail; without, one failure ends the job.
    builder = builder.remote("local[2,100]") if connect else builder.master("local[2,100]")
    return builder.getOrCreate()


def main(folder: Path) -> None:
    setting = Setting.load(folder)
    watch(Watched(folder, setting))
    spark = session(setting.connect)
    stream = Stream(spark, folder, setting)
    stream.run()
    found, expected = stream.totals()
    result = [[[repr(k), n] for k, n in totals.items()] for totals in (found, expected)]
    part = folder / "result.part"
    part.write_text(json.dumps(result))
    part.rename(folder / "result.json")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
