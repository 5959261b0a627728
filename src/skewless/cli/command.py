"""What every command is made of: options under headings, paths with ~, mistakes as one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from skewless.errors import unknown

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Command(click.Command):
    """A command whose help lists options under the headings that they name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Also say whose mistake it is where click does not: an option without its value."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading and its options."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for given in self.get_params(ctx):
            line = given.get_help_record(ctx)
            if line is not None and isinstance(given, click.Option):
                headings.setdefault(getattr(given, "heading", "Options"), []).append(line)
        for heading, lines in headings.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


class Commands(click.Group):
    """Commands by name, in the order in which they were added."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, context_settings=_SETTINGS, **given)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order in which a newcomer needs them."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        """The command, or a sentence with the one that was probably meant."""
        found = super().get_command(ctx, name)
        if found is None:
            raise unknown("command", name, self.commands)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each does, in a whole sentence."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (made.help or "").split("\n\n")[0]) for name, made in self.commands.items()]
            )


class _Option(click.Option):
    def __init__(self, *args: Any, heading: str = "Options", **given: Any) -> None:
        super().__init__(*args, **given)
        self.heading = heading


def path(text: str) -> Path:
    """A path in which ~ is the user's home."""
    return Path(os.path.expanduser(text))


def command(function: Callable[..., None]) -> Command:
    """The function as a command of its name; its docstring is the help."""
    return click.command(cls=Command, context_settings=_SETTINGS)(function)


def option(*names: str, **given: Any) -> Callable[[Any], Any]:
    """An option, under `heading` in the help, which also shows a default that says something."""
    default = given.get("default")
    shown = default is not None and not isinstance(default, bool)
    return click.option(*names, cls=_Option, show_default=shown, **given)
