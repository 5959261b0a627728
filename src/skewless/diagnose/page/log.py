"""The page of an event log, and of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skewless.diagnose.page import svg
from skewless.diagnose.page.page import code, notes, table, text
from skewless.diagnose.units import counted, duration, percent, size, times

if TYPE_CHECKING:
    from skewless.diagnose.compare import LogComparison
    from skewless.diagnose.event_log.log import LogDiagnosis
    from skewless.diagnose.event_log.stages import StageDiagnosis

SHOWN_STAGES = 50  # in the open table; the others are in one that opens
PICTURES = 12
_HEADINGS = [
    "#stage",
    "operator",
    "~partitioned by",
    "cause",
    "#lost",
    "#took",
    "#even",
    "#tasks",
    "#median",
    "#longest",
    "#records max ÷ mean",
    "#spilled",
    "#retries",
    "#copies",
]


def log_body(found: LogDiagnosis) -> str:
    """Everything there is to say of a log."""
    took = "" if found.took_s is None else f", {duration(found.took_s)}"
    return "".join(
        [
            f"<h1>{text(found.application or found.path)}</h1>",
            f'<p class="soft">Spark {text(found.spark or "of unknown version")}{took}; '
            f"{counted(len(found.stages), 'stage')} lost {duration(found.lost_s)}</p>",
            f'<p class="verdict">{text(found.verdict)}</p>',
            notes(found.notes),
            code(found.code),
            _pictures(found.stages),
            _stages(found.stages),
        ]
    )


def _pictures(stages: Sequence[StageDiagnosis]) -> str:
    drawn = [s for s in stages if s.drawn and s.cause != "none"][:PICTURES]
    if not drawn:
        return ""
    parts = ["<h2>Where time was lost</h2>"]
    for number, stage in enumerate(drawn):
        opened = " open" if number < 3 else ""
        left_out = ""
        if len(stage.drawn) < stage.tasks:
            shown = f"{len(stage.drawn):,} of {stage.tasks:,} tasks, the longest among them"
            left_out = f'<figcaption class="soft">{shown}</figcaption>'
        parts.append(
            f"<details{opened}><summary>{text(stage.sentence)}</summary><figure>"
            f"{svg.timeline(stage.drawn, stage.even_s)}{left_out}</figure></details>"
        )
    return "".join(parts)


def _stages(stages: Sequence[StageDiagnosis]) -> str:
    if not stages:
        return "<h2>Stages</h2><p>There is no stage with a task that ended well.</p>"
    parts = ["<h2>Stages by the time they lost</h2>", _table(stages[:SHOWN_STAGES])]
    if rest := stages[SHOWN_STAGES:]:
        count = f"{len(rest):,} more" if len(rest) > 1 else "1 more"
        parts.append(f"<details><summary>{count}</summary>{_table(rest)}</details>")
    return "".join(parts)


def _table(stages: Sequence[StageDiagnosis]) -> str:
    return table(_HEADINGS, (_row(stage) for stage in stages))


def _row(stage: StageDiagnosis) -> list[str]:
    number = f"{stage.stage}.{stage.attempt}" if stage.attempt else str(stage.stage)
    cause = text(stage.cause)
    return [
        number,
        text(stage.operator),
        text(", ".join(stage.columns)),
        cause if stage.cause == "none" else f'<span class="hot">{cause}</span>',
        duration(stage.lost_s),
        duration(stage.took_s),
        duration(stage.even_s),
        f"{stage.tasks:,}",
        duration(stage.median_s),
        duration(stage.max_s),
        times(stage.records_max_over_mean),
        size(stage.spilled_bytes) if stage.spilled_bytes else "",
        f"{stage.retries:,}" if stage.retries else "",
        f"{stage.speculative:,}" if stage.speculative else "",
    ]


def comparison_body(found: LogComparison) -> str:
    """Two logs, before and after."""
    rows = [
        [
            text(pair.label),
            duration(pair.before_took_s),
            duration(pair.after_took_s),
            duration(pair.before_lost_s),
            duration(pair.after_lost_s),
            percent(pair.gain) if pair.gain >= 0 else f"−{percent(-pair.gain)}",
        ]
        for pair in found.pairs[:SHOWN_STAGES]
    ]
    headings = [
        "~what",
        "#took before",
        "#took after",
        "#lost before",
        "#lost after",
        "#time saved",
    ]
    return "".join(
        [
            "<h1>Before and after</h1>",
            f'<p class="verdict">{text(found.verdict)}</p>',
            table(headings, rows),
            f"<details><summary>Before: {text(found.before.path)}</summary>"
            f"{log_body(found.before)}</details>",
            f"<details><summary>After: {text(found.after.path)}</summary>"
            f"{log_body(found.after)}</details>",
        ]
    )
