"""`skewless schemes`: what there is to choose from, with parameters and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skewless.cli import options
from skewless.cli.command import command
from skewless.cli.options import console_for, print_json


@command
@options.as_json
def schemes(as_json: bool) -> None:
    """List all schemes and streams with their parameters and defaults."""
    from skewless.report.tables import table
    from skewless.schemes import SCHEMES
    from skewless.streams import STREAMS

    console = console_for(as_json)
    kinds: dict[str, Mapping[str, type[Any]]] = {"schemes": SCHEMES, "streams": STREAMS}
    if as_json:
        print_json({kind: _described(registry) for kind, registry in kinds.items()})
        return
    for kind, registry in kinds.items():
        rows = [
            {
                "name": found["name"],
                "parameters": ", ".join(map(_word, found["parameters"])) or "-",
                "what": found["what"],
            }
            for found in _described(registry)
        ]
        console.print(table(kind.capitalize(), rows))
    console.print(
        "Write name, or name:parameter=value,parameter=value; those without = are needed."
    )


def _described(registry: Mapping[str, type[Any]]) -> list[dict[str, Any]]:
    from skewless.spec import parameters

    return [
        {
            "name": name,
            "what": (found.__doc__ or "").strip().splitlines()[0].rstrip("."),
            "parameters": parameters(found),
        }
        for name, found in registry.items()
    ]


def _word(parameter: Mapping[str, Any]) -> str:
    if parameter["required"]:
        return str(parameter["name"])
    default = parameter["default"]
    shown = (
        "…" if default is None else str(default).lower() if default in (True, False) else default
    )
    return f"{parameter['name']}={shown}"
