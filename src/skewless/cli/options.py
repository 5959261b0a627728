"""Options that several commands share, and where their output goes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperCommand

from skewless.errors import SkewlessError

StreamSpec = Annotated[
    str,
    typer.Option(
        "--stream", help="Stream: name:param=value,… e.g. zipf:z=1.5,keys=1e4,messages=1e6."
    ),
]
SchemeSpec = Annotated[
    str, typer.Option("--scheme", help="Scheme: name[:param=value,…], e.g. partial:choices=5.")
]
Workers = Annotated[int, typer.Option("--workers", help="Number of workers.")]
Sources = Annotated[int, typer.Option("--sources", help="Sources, each with a tally of its own.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the stream and of the hashes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]

FILE_WIDTH = 120


class OptionalPort(TyperCommand):
    """A command whose `--live` may stand without a port, which means a free one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the port out where it was left out."""
        full: list[str] = []
        for i, arg in enumerate(args):
            full.append(arg)
            if arg == "--live" and not (i + 1 < len(args) and args[i + 1].isdigit()):
                full.append("0")
        return super().parse_args(ctx, full)


def path_option(help_text: str) -> Any:
    """An option that takes a path, in which ~ is the user's home."""
    return typer.Option(help=help_text, parser=_expanded, metavar="PATH")


def _expanded(text: str | Path) -> Path:
    return Path(os.path.expanduser(text))


def console_for(as_json: bool) -> Console:
    """Output for people: on stderr when stdout is to be JSON only; wide where no terminal is."""
    console = Console(stderr=as_json)
    if not console.is_terminal:
        console.width = max(console.width, FILE_WIDTH)
    return console


def print_json(value: Any) -> None:
    """JSON for machines, alone on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def numbers(text: str, option: str) -> list[float]:
    """The numbers of an option that takes several."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SkewlessError(
            f"{option} takes numbers separated by commas, such as 5,5,1, not '{text}'."
        ) from None
