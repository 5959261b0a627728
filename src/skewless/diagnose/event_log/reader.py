"""The events of a log, one line at a time, into the stages that they tell of.

Only lines of a few kinds are parsed; the rest, often half of a log, is told by its first bytes and
skipped. A stage is summed up as soon as it completes, so memory does not grow with the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skewless.diagnose.event_log.codecs import Cut, NotALog, lines_of
from skewless.diagnose.event_log.files import log_files
from skewless.diagnose.event_log.plan import Plans
from skewless.diagnose.event_log.tasks import (
    StageTasks,
    sql_accumulators,
    task_accumulators,
    without_accumulators,
)
from skewless.errors import SkewlessError

_START = b'{"Event":"'
_TASK_END = b"SparkListenerTaskEnd"
_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
StageKey = tuple[int, int]  # stage, attempt


@dataclass(slots=True)
class Ended:
    """A stage that completed, failed, or was cut off with the log."""

    key: StageKey
    name: str
    tasks: StageTasks
    planned: int  # tasks that it has
    cores: int  # of all executors while it ran
    execution: int | None  # of SQL
    batch: int | None  # of a stream
    failure: str | None
    whole: bool  # False: the log ends before the stage does


@dataclass(slots=True)
class _Open:
    name: str
    planned: int
    cores: int
    tasks: StageTasks = field(default_factory=StageTasks)


class Reader:
    """Takes in a log and hands each ended stage, with the plans of its execution, to `on_stage`."""

    def __init__(self, on_stage: Callable[[Ended, Plans | None], None]) -> None:
        self._on_stage = on_stage
        self.application, self.version = "", ""
        self.started_ms: int | None = None
        self.ended_ms: int | None = None
        self.cut = False
        self.events = 0
        self.failed_jobs = 0
        self.records_written = 0
        self._cores: dict[str, int] = {}
        self._task_cpus = 1
        self._open: dict[StageKey, _Open] = {}
        self._plans: dict[int, Plans] = {}
        self._execution: dict[int, int] = {}  # stage -> SQL execution
        self._batch: dict[int, int] = {}  # stage -> micro-batch
        self._waiting: dict[int, list[Ended]] = {}  # execution -> stages, until its plans are final
        self._handlers: dict[bytes, Callable[[dict[str, Any]], None]] = {
            name.encode(): handler
            for name, handler in {
                "SparkListenerLogStart": self._log_start,
                "SparkListenerApplicationStart": self._application_start,
                "SparkListenerApplicationEnd": self._application_end,
                "SparkListenerEnvironmentUpdate": self._environment,
                "SparkListenerExecutorAdded": self._executor_added,
                "SparkListenerExecutorRemoved": self._executor_removed,
                "SparkListenerJobStart": self._job_start,
                "SparkListenerJobEnd": self._job_end,
                "SparkListenerStageSubmitted": self._stage_submitted,
                "SparkListenerStageCompleted": self._stage_completed,
                f"{_SQL}ExecutionStart": self._plan,
                f"{_SQL}AdaptiveExecutionUpdate": self._plan,
                f"{_SQL}ExecutionEnd": self._execution_end,
            }.items()
        }

    def read(self, path: str | Path, progress: Callable[[int], None]) -> None:
        """Read a log to its end, or as far as it goes."""
        found = log_files(path)
        self.cut = found.beheaded
        for file in found.files:
            try:
                for line in lines_of(file, progress):
                    self._line(line, file)
            except Cut:
                self.cut = True
            except NotALog:
                self._odd(file)
        if not self.events:
            what = "cut off before its first event" if self.cut else "empty"
            raise SkewlessError(f"The event log '{path}' is {what}: there is nothing to diagnose.")
        self.cut = self.cut or self.ended_ms is None
        for key in list(self._open):
            self._close(key, None, whole=False)
        for execution in list(self._waiting):
            self._settle(execution)

    def _line(self, line: bytes, file: Path) -> None:
        if not line.startswith(_START):
            if line.strip():
                self._odd(file)
            return
        self.events += 1
        kind = line[len(_START) : line.find(b'"', len(_START))]
        handler = self._handlers.get(kind)
        if handler is None and kind != _TASK_END:
            return
        try:
            if handler is None:
                self._task_end(line)
            else:
                handler(json.loads(line))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ):
            self.cut = True  # half a line, where the log ends or was damaged

    def _odd(self, file: Path) -> None:
        if self.events:
            self.cut = True
            return
        raise SkewlessError(
            f"'{file}' is not a Spark event log: its first line is no event, which begins with "
            f"{_START.decode()}…; give the file or folder that Spark wrote into spark.eventLog.dir."
        )

    def _log_start(self, event: dict[str, Any]) -> None:
        self.version = str(event.get("Spark Version", ""))

    def _application_start(self, event: dict[str, Any]) -> None:
        self.application = str(event.get("App Name", ""))
        self.started_ms = int(event["Timestamp"])

    def _application_end(self, event: dict[str, Any]) -> None:
        self.ended_ms = int(event["Timestamp"])

    def _environment(self, event: dict[str, Any]) -> None:
        properties = event.get("Spark Properties") or {}
        pairs = properties.items() if isinstance(properties, dict) else properties
        self._task_cpus = max(1, int(dict(pairs).get("spark.task.cpus", 1)))

    def _executor_added(self, event: dict[str, Any]) -> None:
        self._cores[event["Executor ID"]] = int(event["Executor Info"]["Total Cores"])
        for stage in self._open.values():
            stage.cores = max(stage.cores, self._slots())

    def _executor_removed(self, event: dict[str, Any]) -> None:
        self._cores.pop(event["Executor ID"], None)

    def _slots(self) -> int:
        return sum(self._cores.values()) // self._task_cpus

    def _job_start(self, event: dict[str, Any]) -> None:
        properties = event.get("Properties") or {}
        execution = properties.get("spark.sql.execution.id")
        batch = properties.get("streaming.sql.batchId")
        for stage in event.get("Stage IDs") or ():
            if execution is not None:
                self._execution.setdefault(int(stage), int(execution))
            if batch is not None:
                self._batch.setdefault(int(stage), int(batch))

    def _job_end(self, event: dict[str, Any]) -> None:
        self.failed_jobs += (event.get("Job Result") or {}).get("Result") == "JobFailed"

    def _stage_submitted(self, event: dict[str, Any]) -> None:
        info = event["Stage Info"]
        key = int(info["Stage ID"]), int(info["Stage Attempt ID"])
        self._open[key] = _Open(
            str(info.get("Stage Name", "")), int(info["Number of Tasks"]), self._slots()
        )

    def _task_end(self, line: bytes) -> None:
        event = json.loads(without_accumulators(line))
        key = int(event["Stage ID"]), int(event["Stage Attempt ID"])
        stage = self._open.get(key)
        if stage is not None:  # else a copy that was still running when its stage was done
            if not stage.tasks.count:  # a stage that never completes names them nowhere else
                stage.tasks.accumulators |= task_accumulators(line)
            stage.tasks.end(event)
            written = (event.get("Task Metrics") or {}).get("Output Metrics") or {}
            self.records_written += int(written.get("Records Written", 0))

    def _stage_completed(self, event: dict[str, Any]) -> None:
        info = event["Stage Info"]
        key = int(info["Stage ID"]), int(info["Stage Attempt ID"])
        if key not in self._open:
            return
        found = sql_accumulators(info.get("Accumulables"))
        self._open[key].tasks.accumulators |= found
        failure = info.get("Failure Reason")
        self._close(key, None if failure is None else str(failure), whole=True)

    def _close(self, key: StageKey, failure: str | None, whole: bool) -> None:
        stage = self._open.pop(key)
        execution = self._execution.get(key[0])
        ended = Ended(
            key,
            stage.name,
            stage.tasks,
            stage.planned,
            stage.cores,
            execution,
            self._batch.get(key[0]),
            failure,
            whole,
        )
        if execution is None:
            self._on_stage(ended, None)
        else:
            self._waiting.setdefault(execution, []).append(ended)

    def _plan(self, event: dict[str, Any]) -> None:
        plans = self._plans.setdefault(int(event["executionId"]), Plans())
        plans.add(event.get("sparkPlanInfo"))

    def _execution_end(self, event: dict[str, Any]) -> None:
        self._settle(int(event["executionId"]))

    def _settle(self, execution: int) -> None:
        """The plans of an execution are final: hand its stages on, and forget them."""
        plans = self._plans.pop(execution, None)
        for ended in self._waiting.pop(execution, ()):
            self._on_stage(ended, plans)
