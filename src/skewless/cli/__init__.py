"""The command line: parse, call, print. One file per command; heavy imports inside them."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from skewless._version import __version__
from skewless.cli.compare import compare
from skewless.cli.demo import demo
from skewless.cli.diagnose import diagnose
from skewless.cli.options import OptionalPort
from skewless.cli.queue import queue
from skewless.cli.reproduce import reproduce
from skewless.cli.run import run
from skewless.cli.schemes import schemes
from skewless.cli.simulate import simulate
from skewless.errors import SkewlessError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Even work from skewed keys, on Spark.",
)
for command in (demo, diagnose, simulate, queue, compare, run, reproduce, schemes):
    app.command(cls=OptionalPort if command is run else None)(command)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        typer.echo(f"skewless {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    try:
        app()
    except SkewlessError as error:
        _refuse(str(error))
    except MemoryError as error:
        _refuse(f"There is not enough memory ({error}): give smaller parameters or fewer workers.")


def _refuse(sentence: str) -> NoReturn:
    typer.secho(f"Error: {sentence}", fg=typer.colors.RED, err=True)
    sys.exit(2)
