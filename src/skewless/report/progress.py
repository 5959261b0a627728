"""Progress on a terminal; silent when the output is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)


@contextmanager
def messages_bar(
    console: Console, label: str, total: int | None
) -> Iterator[Callable[[int], None]]:
    """A bar that is told how many messages were done; without a total it only counts."""
    columns = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    columns += [TextColumn("{task.completed:,.0f} messages"), TimeRemainingColumn()]
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with shown as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def bytes_bar(console: Console, label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that is told how many bytes were read."""
    text = TextColumn("{task.description}", markup=False)
    columns = [text, BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    shown = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    with shown as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def steps_spinner(console: Console, label: str) -> Iterator[Callable[[str], None]]:
    """A line that names the step done last."""
    with console.status(f"{label} …") as status:
        yield lambda step: status.update(f"{label}: {step} done …")
