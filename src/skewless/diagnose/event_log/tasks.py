"""What the tasks of one stage did, kept in a few numbers per task while the stage runs."""

from __future__ import annotations

import json
from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
_TOO_LARGE = 1 << 60


class StageTasks:
    """The ended tasks of one attempt of a stage."""

    __slots__ = (
        "accumulators",
        "executors",
        "failed",
        "finish_ms",
        "killed",
        "launch_ms",
        "numbers",
        "partitions",
        "read",
        "speculative",
        "spilled_bytes",
        "where",
        "written",
    )

    def __init__(self) -> None:
        self.launch_ms, self.finish_ms = array("q"), array("q")
        self.read, self.written = array("q"), array("q")
        self.where, self.partitions = array("i"), array("q")
        self.numbers: dict[str, int] = {}  # executor -> its number in `where`
        self.executors: list[str] = []
        self.accumulators: set[int] = set()
        self.spilled_bytes = self.failed = self.killed = self.speculative = 0

    def end(self, event: dict[str, Any]) -> None:
        """Take in the end of a task."""
        info = event.get("Task Info") or {}
        metrics = event.get("Task Metrics") or {}
        self.speculative += bool(info.get("Speculative"))
        reason = (event.get("Task End Reason") or {}).get("Reason", "")
        if reason != "Success":
            if reason == "TaskKilled":
                self.killed += 1
            else:
                self.failed += 1
            return
        launch, finish = int(info.get("Launch Time", 0)), int(info.get("Finish Time", 0))
        incoming, shuffled = metrics.get("Input Metrics"), metrics.get("Shuffle Read Metrics")
        read = int((incoming or {}).get("Records Read", 0))
        read += int((shuffled or {}).get("Total Records Read", 0))
        outgoing, put = metrics.get("Output Metrics"), metrics.get("Shuffle Write Metrics")
        written = int((outgoing or {}).get("Records Written", 0))
        written += int((put or {}).get("Shuffle Records Written", 0))
        partition, executor = int(info.get("Index", 0)), str(info.get("Executor ID", ""))
        if any(abs(n) >= _TOO_LARGE for n in (launch, finish, read, written, partition)):
            raise ValueError("no task has such figures")
        # Nothing may go wrong from here on, or the columns would differ in length.
        self.launch_ms.append(launch)
        self.finish_ms.append(max(finish, launch))
        self.partitions.append(partition)
        self.where.append(self._number(executor))
        self.read.append(read)
        self.written.append(written)
        self.spilled_bytes += int(metrics.get("Disk Bytes Spilled", 0))

    def _number(self, executor: str) -> int:
        if executor not in self.numbers:
            self.numbers[executor] = len(self.executors)
            self.executors.append(executor)
        return self.numbers[executor]

    @property
    def count(self) -> int:
        """Tasks that ended well."""
        return len(self.launch_ms)

    def seconds(self) -> F64:
        """How long each took, from launch to end."""
        return (_numbers(self.finish_ms) - _numbers(self.launch_ms)) / 1000

    def most_at_once(self) -> int:
        """The most of them that ran at the same time."""
        starts, ends = np.sort(_numbers(self.launch_ms)), np.sort(_numbers(self.finish_ms))
        # A task that ends in the millisecond in which another starts has left its core to it.
        running = np.arange(1, starts.size + 1) - np.searchsorted(ends, starts, side="right")
        return int(max(running.max(initial=1), 1))

    def records(self) -> F64:
        """What each read, or where nothing was read, what it wrote."""
        read = _numbers(self.read)
        return read if read.any() else _numbers(self.written)


_FROM, _TO = b',"Accumulables":[', b'"Task Metrics":{'


def without_accumulators(line: bytes) -> bytes:
    """The end of a task without what is most of it and not needed: much faster to parse.

    Neither mark can be inside a string, where quotes have a backslash before them.
    """
    start, stop = line.find(_FROM), line.rfind(_TO)
    return line if start < 0 or stop < start else line[:start] + b"}," + line[stop:]


def task_accumulators(line: bytes) -> set[int]:
    """The accumulators of a plan that the end of a task names."""
    info = json.loads(line).get("Task Info") or {}
    return sql_accumulators(info.get("Accumulables"))


def _numbers(values: Any) -> F64:
    return np.frombuffer(values, np.int64).astype(np.float64) if len(values) else np.empty(0)


def sql_accumulators(values: Any) -> set[int]:
    """The numbers of the accumulators that are metrics of a plan's nodes."""
    return {
        int(value["ID"])
        for value in values or ()
        if value.get("Metadata") == "sql" and "ID" in value
    }
