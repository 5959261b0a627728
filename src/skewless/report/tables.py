"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from skewless.results import Reproduction

BLOCKS = "▏▎▍▌▋▊▉█"


def number(value: Any) -> str:
    """A number as people read it: thousands apart, small ones with an exponent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1e}"


def bar(share: float, width: int = 24) -> str:
    """A bar of block characters, `width` wide at share 1."""
    eighths = max(0, round(min(share, 1.0) * width * 8))
    full, rest = divmod(eighths, 8)
    return "█" * full + (BLOCKS[rest - 1] if rest else "")


def table(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None
) -> Table:
    """Rows of named values as a table; names of words separated by underscores read as words."""
    names = list(columns or rows[0])
    made = Table(
        title=escape(title),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        collapse_padding=True,
        pad_edge=False,
    )
    for name in names:
        numeric = all(isinstance(row.get(name), int | float) for row in rows)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        # Where the terminal is too narrow a number goes on in the next line: half of it is wrong.
        made.add_column(name.replace("_", " "), justify=justify, overflow="fold")
    for row in rows:
        made.add_row(*(escape(number(row.get(name, ""))) for name in names))
    return made


def observed(
    scheme: str,
    total_count: int,
    latency: float,
    throughput: float,
    sigma_percent: float,
    replication: float,
) -> dict[str, Any]:
    """The Distribution Observer's measures as a row: one format, in the simulator and on Spark.

    latency: from the first to the last output, in the host's unit of time
    """
    return {
        "scheme": scheme,
        "total_count": total_count,
        "latency": latency,
        "throughput": throughput,
        "sigma_percent": sigma_percent,
        "replication": replication,
    }


def print_loads(
    console: Console, scheme: str, loads: Sequence[float], most: float | None = None
) -> None:
    """One bar per worker.

    most: the load of a whole bar, where several schemes are to be compared; else the largest
    """
    most = max(max(loads) if most is None else most, 1)
    mean = sum(loads) / len(loads)
    console.print(f"[bold]{escape(scheme)}[/]: load per worker, an even share is {mean:,.0f}")
    for worker, load in enumerate(loads):
        style = "red" if load > 1.2 * mean else "green"
        console.print(f"  {worker:>3} [{style}]{bar(load / most):<24}[/] {load:>12,.0f}")


def print_reproduction(console: Console, result: Reproduction, saved: Sequence[str]) -> None:
    """What should be seen and what was, point by point."""
    console.print(f"[bold]{escape(result.title)}[/]")
    made = Table(box=box.SIMPLE_HEAD)
    for heading in ("", "what should be seen", "expected", "seen"):
        made.add_column(heading, overflow="fold")
    for check in result.checks:
        mark = "[green]✓[/]" if check.holds else "[red]✗[/]"
        made.add_row(mark, escape(check.claim), escape(check.expected), escape(check.seen))
    console.print(made)
    for note in result.notes:
        console.print(f"Note: {escape(note)}")
    kept = sum(check.holds for check in result.checks)
    console.print(f"{kept} of {len(result.checks)} seen. Written: {escape(', '.join(saved))}")
