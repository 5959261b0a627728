"""How objects that were learned show themselves in a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping


def table_of(caption: str, facts: Mapping[str, str]) -> str:
    """A small HTML table of facts by name; an empty fact is left out."""
    cells = "".join(
        f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
        if value
    )
    return f"<table><caption>{caption}</caption>{cells}</table>"
