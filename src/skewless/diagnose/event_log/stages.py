"""What a log says of each stage, in figures and in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from skewless.diagnose.event_log.loss import LEAST_S, Loss, loss_of
from skewless.diagnose.event_log.plan import Plans, Work
from skewless.diagnose.event_log.reader import Ended
from skewless.diagnose.units import duration, percent, printable

DRAWN_TASKS = 400  # of a stage: the longest, and some of the others


@dataclass(frozen=True, slots=True)
class DrawnTask:
    """A task on the time line of its stage; seconds count from the launch of the first."""

    start_s: float
    end_s: float
    records: int
    partition: int


@dataclass(frozen=True, slots=True)
class StageDiagnosis:
    """One stage; the fields of `stages` in JSON, but for the tasks.

    operator: join, window, python, aggregate, exchange, sort, scan, or other; node: the plan's own
        name for it
    columns: that the rows which it reads were partitioned by
    pairs: the same, left and right, of a join whose sides call a column differently; else empty
    records_max_over_mean: of records read per task (or written, if none were read); 1 if none were
    took_s, even_s, lost_s: as `loss` defines them
    read, read_most: records read by all tasks and by the one that read most; written: by all
    retries: attempts that failed; killed: attempts that were stopped, such as the slower of two
        copies; speculative: copies that were started
    batch: the micro-batch of a stream
    whole: whether the log goes on until the stage's end
    """

    stage: int
    attempt: int
    operator: str
    node: str
    columns: list[str]
    pairs: list[tuple[str, str]]
    tasks: int
    median_s: float
    max_s: float
    records_max_over_mean: float
    took_s: float
    even_s: float
    lost_s: float
    cause: str
    cores: int
    read: int
    read_most: int
    written: int
    spilled_bytes: int
    retries: int
    killed: int
    speculative: int
    batch: int | None
    failure: str | None
    whole: bool
    name: str
    sentence: str
    drawn: list[DrawnTask] = field(default_factory=list, repr=False)

    @property
    def label(self) -> str:
        """The stage as people say it: its number, its operator and its columns."""
        number = str(self.stage) if not self.attempt else f"{self.stage} (attempt {self.attempt})"
        by = f" on {printable(', '.join(self.columns))}" if self.columns else ""
        batch = "" if self.batch is None else f" of batch {self.batch}"
        return f"stage {number}{batch}, {self.operator}{by}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, without the tasks."""
        plain = asdict(self)
        del plain["drawn"]
        return plain


def diagnosed(ended: Ended, plans: Plans | None) -> StageDiagnosis | None:
    """A stage in figures; None where no task of it ended well."""
    tasks = ended.tasks
    if not tasks.count:
        return None
    work = plans.work_of(tasks.accumulators) if plans else None
    work = work or Work("other", "", ())
    seconds, records = tasks.seconds(), tasks.records()
    cores = _cores_of(ended)
    first_ms = min(tasks.launch_ms)
    took_s = (max(tasks.finish_ms) - first_ms) / 1000
    executors = np.frombuffer(tasks.where, np.int32)
    loss = loss_of(seconds, records, executors, took_s, cores, tasks.failed)
    mean = float(records.mean())
    made: dict[str, Any] = {
        "stage": ended.key[0],
        "attempt": ended.key[1],
        "operator": work.operator,
        "node": work.node,
        "columns": list(work.columns),
        "pairs": list(work.pairs),
        "tasks": tasks.count,
        "median_s": float(np.median(seconds)),
        "max_s": float(seconds.max()),
        "records_max_over_mean": float(records.max()) / mean if mean else 1.0,
        "took_s": loss.took_s,
        "even_s": loss.even_s,
        "lost_s": loss.lost_s,
        "cause": loss.cause,
        "cores": loss.cores,
        "read": sum(tasks.read),
        "read_most": max(tasks.read),
        "written": sum(tasks.written),
        "spilled_bytes": tasks.spilled_bytes,
        "retries": tasks.failed,
        "killed": tasks.killed,
        "speculative": tasks.speculative,
        "batch": ended.batch,
        "failure": None if ended.failure is None else ended.failure.splitlines()[0][:300],
        "whole": ended.whole,
        "name": ended.name[:200],
    }
    stage = StageDiagnosis(**made, sentence="", drawn=_drawn(ended, seconds, first_ms))
    object.__setattr__(stage, "sentence", f"{stage.label}: {_sentence(stage, ended.planned, loss)}")
    return stage


def _cores_of(ended: Ended) -> int:
    """The cores that the stage could use; those of others that ran beside it do not count."""
    at_once = ended.tasks.most_at_once()
    if not ended.cores:  # the log does not say
        return at_once
    # The driver hears of a task's end after its core was given on: at times more seem to run.
    return ended.cores if ended.tasks.count < ended.cores else min(at_once, ended.cores)


def _sentence(stage: StageDiagnosis, planned: int, loss: Loss) -> str:
    parts = [_why(stage)]
    if stage.lost_s > LEAST_S and stage.cause != "none":
        parts.append(
            f"{duration(stage.lost_s)} of {duration(stage.took_s)} were waiting; even work would "
            f"take {duration(stage.even_s)}"
        )
    else:
        parts.append(f"it took {duration(stage.took_s)}")
    if not stage.whole:
        parts.append(f"the log ends after {stage.tasks:,} of {planned:,} tasks")
    if stage.failure is not None:
        parts.append("the stage failed")
    return "; ".join(parts)


def _why(stage: StageDiagnosis) -> str:
    longest = f"one of {stage.tasks:,} tasks took {duration(stage.max_s)}"
    typical = f"the median {duration(stage.median_s)}"
    if stage.cause == "skew of records":
        total = stage.read or stage.written
        most = stage.records_max_over_mean * total / max(stage.tasks, 1)
        did = "read" if stage.read else "wrote"
        share = percent(most / total) if total else "most"
        return f"one of {stage.tasks:,} tasks {did} {share} of the rows"
    if stage.cause == "costly key":
        return f"{longest}, {typical}, and not for its number of rows: some keys or rows cost more"
    if stage.cause == "slow machine":
        return f"{longest}, {typical}, and so did others on its executor: that machine is slow"
    if stage.cause == "too few tasks":
        return f"{stage.tasks:,} tasks are too few for {stage.cores:,} cores"
    if stage.cause == "task retries":
        return f"{stage.retries:,} attempts of tasks failed and ran again"
    if stage.cause == "late starts":
        return "tasks are even, but some started late: cores came late or were held by others"
    return "work is even"


def _drawn(ended: Ended, seconds: Any, first_ms: int) -> list[DrawnTask]:
    """The longest tasks, and evenly spaced ones of the others, in the order of their start."""
    tasks = ended.tasks
    order = np.argsort(-seconds, kind="stable")
    half = DRAWN_TASKS // 2
    if order.size > DRAWN_TASKS:
        others = order[half:]
        picked = np.linspace(0, others.size - 1, DRAWN_TASKS - half).astype(int)
        order = np.concatenate([order[:half], others[picked]])
    drawn = [
        DrawnTask(
            (tasks.launch_ms[i] - first_ms) / 1000,
            (tasks.finish_ms[i] - first_ms) / 1000,
            tasks.read[i] or tasks.written[i],
            tasks.partitions[i],
        )
        for i in order.tolist()
    ]
    return sorted(drawn, key=lambda task: (task.start_s, task.end_s))
