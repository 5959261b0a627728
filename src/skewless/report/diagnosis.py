"""Diagnoses on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from skewless.diagnose.compare import LogComparison
from skewless.diagnose.data import Diagnosis, KeyRanking
from skewless.diagnose.event_log.log import LogDiagnosis
from skewless.diagnose.units import counted, duration, percent, printable, size, times
from skewless.report.tables import bar, table

SHOWN_STAGES = 20


def print_data(console: Console, found: Diagnosis) -> None:
    """A stream or a table: its hottest keys, the candidates, the verdict and the code."""
    console.print(
        f"[bold]{escape(printable(found.subject))}[/] by {escape(printable(found.key))}: "
        f"{found.messages:,} messages, {found.keys:,} keys, {found.nulls:,} nulls; "
        f"{found.workers:,} workers."
    )
    most = max((h.share for h in found.hot), default=1.0)
    rows = [
        {
            "hottest keys": printable(h.key),
            "share": percent(h.share),
            "±": percent(h.error) if h.error else "exact",
            " ": bar(h.share / most),
        }
        for h in found.hot
    ]
    if rows:
        console.print(table("", rows))
    console.print(
        table(
            "What each candidate would bring",
            [
                {
                    "": "→" if c.scheme == found.choice else "",
                    "candidate": c.scheme,
                    "time ÷ ideal": times(c.time_over_ideal),
                    "fullest ÷ mean": times(c.max_over_mean),
                    "workers per key": times(c.replication),
                }
                for c in found.candidates
            ],
        )
    )
    _print_verdict(console, found.verdict, found.code, found.notes)


def print_ranking(console: Console, ranking: KeyRanking) -> None:
    """Several keys, the worst first."""
    rows = [{name: printable(str(value)) for name, value in row.items()} for row in ranking.rows()]
    console.print(table(f"The worst key is {printable(ranking.diagnoses[0].key)}", rows))
    for found in ranking.diagnoses:
        console.print(
            f"[bold]{escape(printable(found.key))}[/]: {escape(printable(found.verdict))}"
        )


def print_log(console: Console, found: LogDiagnosis) -> None:
    """An event log: its stages by the time they lost."""
    took = "" if found.took_s is None else f", {duration(found.took_s)}"
    console.print(
        f"[bold]{escape(printable(found.application or found.path))}[/], Spark "
        f"{escape(printable(found.spark or 'of unknown version'))}{took}: "
        f"{counted(len(found.stages), 'stage')} lost {duration(found.lost_s)}."
    )
    rows = [
        {
            "stage": f"{s.stage}.{s.attempt}" if s.attempt else str(s.stage),
            "operator": s.operator,
            "by": printable(", ".join(s.columns)),
            "cause": s.cause,
            "lost": duration(s.lost_s),
            "took": duration(s.took_s),
            "even": duration(s.even_s),
            "tasks": f"{s.tasks:,}",
            "median": duration(s.median_s),
            "longest": duration(s.max_s),
            "records max÷mean": times(s.records_max_over_mean),
            "spilled": size(s.spilled_bytes) if s.spilled_bytes else "",
        }
        for s in found.stages[:SHOWN_STAGES]
    ]
    if rows:
        console.print(table("", rows))
    if len(found.stages) > SHOWN_STAGES:
        console.print(f"… and {len(found.stages) - SHOWN_STAGES:,} more; --html shows them all.")
    _print_verdict(console, found.verdict, found.code, found.notes)


def print_comparison(console: Console, found: LogComparison) -> None:
    """Two event logs, before and after."""
    rows = [
        {
            "what": printable(p.label),
            "took before": duration(p.before_took_s),
            "after": duration(p.after_took_s),
            "lost before": duration(p.before_lost_s),
            "lost after": duration(p.after_lost_s),
            "saved": f"{100 * p.gain:.0f} %",
        }
        for p in found.pairs[:SHOWN_STAGES]
    ]
    if rows:
        console.print(table("Before and after", rows))
    _print_verdict(console, found.verdict, "", [*found.before.notes, *found.after.notes])


def _print_verdict(console: Console, verdict: str, code: str, notes: list[str]) -> None:
    console.print(f"[bold]Verdict:[/] {escape(printable(verdict))}")
    if code:
        console.print()
        # To be pasted: a line that a terminal breaks is still one line.
        console.print(code, markup=False, highlight=False, soft_wrap=True)
    for note in notes:
        console.print(f"Note: {escape(printable(note))}")
