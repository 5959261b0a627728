"""What an experiment hands to the report: rows, pictures, and claims checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Line:
    """One series of a panel; bars have names for x."""

    label: str
    x: Sequence[Any]
    y: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    kind: Literal["lines", "points", "bars"] = "lines"
    log_x: bool = False
    log_y: bool = False
    even: float | None = None  # what each would have if all had the same


@dataclass(frozen=True)
class Check:
    """One thing that must be seen: what, within what bounds, what was seen."""

    claim: str
    expected: str
    seen: str
    holds: bool


def at_most(claim: str, seen: float, limit: float) -> Check:
    """The figure must not exceed the limit."""
    return Check(claim, f"≤ {limit:.3g}", f"{seen:.3g}", seen <= limit)


def at_least(claim: str, seen: float, limit: float) -> Check:
    """The figure must reach the limit."""
    return Check(claim, f"≥ {limit:.3g}", f"{seen:.3g}", seen >= limit)


def between(claim: str, seen: float, low: float, high: float) -> Check:
    """The figure must lie within the bounds."""
    return Check(claim, f"{low:.3g} … {high:.3g}", f"{seen:.3g}", low <= seen <= high)


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper, as it came out here."""

    name: str
    title: str
    rows: Sequence[Mapping[str, Any]]  # the CSV
    checks: Sequence[Check]
    panels: Sequence[Panel] = field(default=())
    notes: Sequence[str] = field(default=())

    @property
    def holds(self) -> bool:
        """Every claim was seen."""
        return all(check.holds for check in self.checks)


@dataclass(frozen=True)
class Setting:
    """How an experiment is run: its size, its seed, its data, and whom to tell of progress."""

    quick: bool = False
    seed: int = 0
    streams: int | None = None  # random streams to average over, where the paper does
    data: Path | None = None
    step: Callable[[str], None] = lambda done: None


Experiment = Callable[[Setting], Reproduction]
