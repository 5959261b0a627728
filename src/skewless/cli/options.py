"""Options that several commands share, and where their output goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from skewless.cli.command import option
from skewless.errors import SkewlessError

FILE_WIDTH = 120

stream = option(
    "--stream",
    required=True,
    help="Stream: name:param=value,… such as zipf:z=1.5,keys=1e4,messages=1e6.",
)
workers = option("--workers", type=int, required=True, help="Number of workers.")
sources = option(
    "--sources", default=1, help="Number of sources; each counts only what it sent itself."
)
seed = option("--seed", default=0, help="Seed of the stream and of the hashes.")
as_json = option("--json", "as_json", is_flag=True, help="Print JSON only.")
master = option("--master", help="Spark master; by default, local with a thread per worker.")


def scheme(**given: Any) -> Callable[[Any], Any]:
    """`--scheme`, required or with a default."""
    return option(
        "--scheme", help="Scheme: name[:param=value,…], such as partial:choices=5.", **given
    )


def console_for(as_json: bool) -> Console:
    """Output for people: on stderr when stdout is to be JSON only; wide where no terminal is."""
    console = Console(stderr=as_json)
    if not console.is_terminal:
        console.width = max(console.width, FILE_WIDTH)
    return console


def print_json(value: Any) -> None:
    """JSON for machines, alone on stdout."""
    click.echo(json.dumps(value, indent=2, allow_nan=False))


def numbers(text: str, option: str) -> list[float]:
    """The numbers of an option that takes several."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SkewlessError(
            f"{option} takes numbers separated by commas, such as 5,5,1, not '{text}'."
        ) from None
