"""The command line: parse, call, print. One file per command; heavy imports inside them."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import NoReturn

import click

from skewless._version import __version__
from skewless.cli.command import Commands
from skewless.cli.compare import compare
from skewless.cli.demo import demo
from skewless.cli.diagnose import diagnose
from skewless.cli.queue import queue
from skewless.cli.reproduce import reproduce
from skewless.cli.run import run
from skewless.cli.schemes import schemes
from skewless.cli.simulate import simulate
from skewless.errors import SkewlessError

_PACKAGES = ("llvmlite", "numba", "numpy", "pyarrow", "xxhash")  # loaded when a command needs them
INTERRUPTED = 130  # the exit code that shells give to what Ctrl-C ended


@click.group(cls=Commands, invoke_without_command=True)
@click.version_option(__version__, message="skewless %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Even work from skewed keys, on Spark."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for _command in (demo, diagnose, simulate, queue, compare, run, reproduce, schemes):
    app.add_command(_command)


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2."""
    _print_what_can_be()
    try:
        app.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except SkewlessError as error:
        _refuse(str(error))
    except click.UsageError as error:
        said, asked = error.format_message(), error.ctx.command_path if error.ctx else "skewless"
        stop = "" if said.endswith((".", "?")) else "."
        _refuse(f"{said}{stop} '{asked} --help' lists all options.")
    except click.Abort:
        sys.exit(INTERRUPTED)
    except MemoryError as error:
        _refuse(f"There is not enough memory ({error}): give smaller parameters or fewer workers.")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        _refuse(f"The package {package} is not installed: pip install skewless installs all.")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _forget_output()
        where = f"'{error.filename}'" if error.filename else "the output"
        _refuse(f"There is no space left for {where}: free some, or write it to another disk.")


def _print_what_can_be() -> None:
    """In a locale that lacks a letter, a question mark stands for it; it is no error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _forget_output() -> None:
    """Python writes what is left when it ends, and would complain a second time."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refuse(sentence: str) -> NoReturn:
    click.secho(f"Error: {sentence}", fg="red", err=True)
    sys.exit(2)
