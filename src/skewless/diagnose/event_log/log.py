"""A whole log: its stages ranked by the time that they lost."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skewless.diagnose.event_log.plan import Plans
from skewless.diagnose.event_log.reader import Ended, Reader
from skewless.diagnose.event_log.stages import StageDiagnosis, diagnosed
from skewless.diagnose.units import duration

DRAWN_STAGES = 40  # those that lost most keep their tasks, for a picture
CODE = """\
from skewless.spark import diagnose

diagnose(df, {key}, work="{work}")  # df: what the {operator} of stage {stage} reads"""
JOIN_CODE = """\
from skewless.spark import join

joined = join(left, right, {pairs})  # in place of the join of stage {stage}"""
_WORK = {"join": "join", "aggregate": "aggregate", "window": "group", "python": "fold"}


@dataclass(frozen=True)
class LogDiagnosis:
    """What an event log tells of skew; the fields of `skewless diagnose --event-log --json`.

    stages: by the time lost, the most first
    cut: the log lacks its beginning or its end, so figures cover what is there
    empty_stages: stages of which no task ended well, so that there is nothing to say of them
    """

    path: str
    application: str
    spark: str
    took_s: float | None
    stages: list[StageDiagnosis]
    verdict: str
    code: str
    cut: bool
    failed_jobs: int
    empty_stages: int
    records_written: int
    notes: list[str] = field(default_factory=list)

    @property
    def lost_s(self) -> float:
        """Over all stages."""
        return sum(stage.lost_s for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in JSON."""
        return {
            "path": self.path,
            "application": self.application,
            "spark": self.spark,
            "took_s": self.took_s,
            "lost_s": self.lost_s,
            "stages": [stage.to_dict() for stage in self.stages],
            "verdict": self.verdict,
            "code": self.code,
            "cut": self.cut,
            "failed_jobs": self.failed_jobs,
            "empty_stages": self.empty_stages,
            "records_written": self.records_written,
            "notes": self.notes,
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        worst = [f"  {stage.sentence}" for stage in self.stages[:5]]
        return "\n".join([self.verdict, *worst])

    def _repr_html_(self) -> str:
        from skewless.diagnose.page.log import log_body
        from skewless.diagnose.page.page import fragment

        return fragment(log_body(self))


def diagnose_log(
    path: str | Path, progress: Callable[[int], None] = lambda read: None
) -> LogDiagnosis:
    """Read an event log of Spark 3.3 or later; needs no Spark.

    path: a log file or a rolling folder; plain, zstd, lz4 or gzip
    progress: told the bytes of the files as they are read
    """
    collected = _Collected()
    reader = Reader(collected.add)
    reader.read(path, progress)
    stages = collected.ranked()
    took_s = None
    if reader.started_ms is not None and reader.ended_ms is not None:
        took_s = (reader.ended_ms - reader.started_ms) / 1000
    notes = _notes(reader, collected.empty, stages)
    return LogDiagnosis(
        path=str(path),
        application=reader.application,
        spark=reader.version,
        took_s=took_s,
        stages=stages,
        verdict=_verdict(stages),
        code=_code(stages),
        cut=reader.cut,
        failed_jobs=reader.failed_jobs,
        empty_stages=collected.empty,
        records_written=reader.records_written,
        notes=notes,
    )


class _Collected:
    """All stages, of which only those that lost most keep their tasks."""

    def __init__(self) -> None:
        self._stages: list[StageDiagnosis] = []
        self._drawn: list[
            tuple[float, int]
        ] = []  # a heap of (lost, −place): of equals the first stay
        self.empty = 0

    def add(self, ended: Ended, plans: Plans | None) -> None:
        """Sum up one more stage."""
        stage = diagnosed(ended, plans)
        if stage is None:
            self.empty += 1
            return
        self._stages.append(stage)
        heapq.heappush(self._drawn, (stage.lost_s, 1 - len(self._stages)))
        if len(self._drawn) > DRAWN_STAGES:
            _, place = heapq.heappop(self._drawn)
            self._stages[-place] = replace(self._stages[-place], drawn=[])

    def ranked(self) -> list[StageDiagnosis]:
        """The most lost first; those that lost the same in their own order."""
        return sorted(self._stages, key=lambda s: (-s.lost_s, s.stage, s.attempt))


def _verdict(stages: list[StageDiagnosis]) -> str:
    lossy = [stage for stage in stages if stage.cause != "none"]
    if not stages:
        return "No stage of this log has a task that ended well, so there is nothing to judge."
    if not lossy:
        return f"Nothing is skewed: {len(stages):,} stages, and none lost time that matters."
    worst = lossy[0]
    first, rest = worst.sentence[0].upper() + worst.sentence[1:], len(lossy) - 1
    if not rest:
        return f"{first}."
    lost_s = sum(stage.lost_s for stage in lossy[1:])
    more = "1 more stage" if rest == 1 else f"{rest:,} more stages"
    return f"{first}; {more} lost {duration(lost_s)} together."


def _code(stages: list[StageDiagnosis]) -> str:
    """The next step, where a stage names the columns of a key that is skewed."""
    for stage in stages:
        if stage.cause in ("skew of records", "costly key") and stage.columns:
            if stage.pairs:
                return JOIN_CODE.format(pairs=stage.pairs, stage=stage.stage)
            key = stage.columns[0] if len(stage.columns) == 1 else stage.columns
            work = _WORK.get(stage.operator, "fold")
            known = "with_=other, " if work == "join" else ""
            code = CODE.format(key=repr(key), work=work, operator=stage.operator, stage=stage.stage)
            return code.replace('work="join"', f'{known}work="join"')
    return ""


def _notes(reader: Reader, empty: int, stages: list[StageDiagnosis]) -> list[str]:
    notes = []
    if reader.cut:
        notes.append(
            "The log is not whole: it lacks its beginning or its end, or the application was still "
            "running. Figures cover what it has."
        )
    if reader.failed_jobs:
        jobs = "1 job" if reader.failed_jobs == 1 else f"{reader.failed_jobs:,} jobs"
        notes.append(f"{jobs} failed.")
    if empty:
        count = "1 stage has" if empty == 1 else f"{empty:,} stages have"
        notes.append(f"{count} no task that ended well.")
    batches = {stage.batch for stage in stages if stage.batch is not None}
    if batches:
        lost_s = sum(stage.lost_s for stage in stages if stage.batch is not None)
        count = "1 micro-batch" if len(batches) == 1 else f"{len(batches):,} micro-batches"
        notes.append(f"{count} of streams lost {duration(lost_s)} in all.")
    return notes
