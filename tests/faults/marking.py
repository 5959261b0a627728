"""Slow work that leaves marks with its executor's process id, so that a test can aim."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from skewless.folds import sleeping
from skewless.spark.report.task import Task
from tests.spark.processors import SlowCountPerKey


class Marking(sleeping):
    """A sleeping fold; each task leaves `<batch>-<partition>-<attempt>` holding a process id."""

    def __init__(self, fold, delay_ms, folder):
        super().__init__(fold, delay_ms)
        self.folder = str(folder)

    def reduce_groups(self, groups, columns):
        leave_mark(self.folder)
        return super().reduce_groups(groups, columns)


class MarkingCount(SlowCountPerKey):
    """The same as a stateful processor."""

    def __init__(self, delay_ms, folder):
        super().__init__(delay_ms)
        self.folder = str(folder)

    def handleInputRows(self, key, rows, timerValues):
        leave_mark(self.folder)
        yield from super().handleInputRows(key, rows, timerValues)


def leave_mark(folder):
    """A file that is there whole or not at all."""
    task = Task.current()
    path = Path(folder) / f"{task.batch}-{task.partition}-{task.attempt}"
    if not path.exists():
        part = path.with_name("." + path.name)
        part.write_text(str(executor_pid()))
        part.rename(path)


def executor_pid():
    """The Java process that this Python worker serves."""
    for process in psutil.Process(os.getpid()).parents():
        if process.name() == "java":
            return process.pid
    raise AssertionError("no Java process above this one")
