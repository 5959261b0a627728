"""Write docs/reference.md from the docstrings of what is public.

python scripts/reference.py
"""

import importlib
import inspect
import re
from pathlib import Path

from skewless.schemes import SCHEMES
from skewless.spec import parameters
from skewless.streams import STREAMS

ROOMS = {
    "skewless": "Without Spark.",
    "skewless.spark": "On Spark; see the how-tos for examples.",
    "skewless.folds": "What workers compute per key.",
    "skewless.schemes": "Rules that choose a worker, and what you need to write one.",
    "skewless.measures": "How even it was; see [Measures](measures.md).",
    "skewless.apps": "Applications; see [Applications](applications.md).",
    "skewless.streams": "Streams for the simulator, `run` and `compare`.",
    "skewless.live": "The live page.",
}
# What other packages of ours call and users do not.
INTERNAL = {
    "Grouping": {"bind", "partials"},
    "JoinPlan": {"check", "for_join"},
    "Observer": {"query_is", "add", "saw_batch", "watch"},
    "Stream": {"refuse_empty", "refuse_sources"},
}
PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)$")


def public(room):
    """The public names of a room, in order, with what they are."""
    module = importlib.import_module(room)
    own = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == room]
    for name in sorted(getattr(module, "__all__", own), key=str.lower):
        thing = getattr(module, name)
        if not name.startswith("_") and (inspect.isroutine(thing) or inspect.isclass(thing)):
            yield name, thing


def signature(name, thing):
    """How it is called, without types: those are in the source and in any editor."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    line = found.replace(parameters=plain, return_annotation=inspect.Signature.empty)
    return f"{name}{line}"


def body(doc):
    """A docstring as Markdown: `name: text` lines become a list, doctests become code."""
    lines, code = [], False
    for line in inspect.cleandoc(doc or "").splitlines():
        inside = line.startswith((">>>", "...")) or (code and line.strip() != "")
        if inside != code:
            lines.append("```pycon" if inside else "```")
            code = inside
        found = None if code else PARAMETER.match(line)
        if found:
            if lines and lines[-1] and not lines[-1].startswith(("- ", "    ")):
                lines.append("")
            lines.append(f"- `{found[1]}`: {found[2]}")
        else:
            lines.append(line)
    return "\n".join([*lines, "```"] if code else lines)


def methods(cls):
    """The public methods and properties that a class adds to those of its bases."""
    own, told = vars(cls), {}
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    for name in own.keys() - inherited - INTERNAL.get(cls.__name__, set()):
        thing = getattr(own[name], "__func__", own[name])
        if isinstance(thing, property):
            told[name] = (name, thing.__doc__)
        elif inspect.isfunction(thing):
            same = "" if thing.__name__ == name else f"The same as `{thing.__name__}`."
            told[name] = (signature(name, thing), same or thing.__doc__)
    return [(name, *told[name]) for name in own if name in told]


def entry(room, name, thing):
    """One function or class."""
    yield f"### {room}.{name}\n"
    yield f"```text\n{signature(name, thing)}\n```\n"
    yield body(thing.__doc__) + "\n"
    if inspect.isclass(thing):
        for method, call, doc in methods(thing):
            if doc and not method.startswith("_"):
                yield f"**`.{call}`**: {body(doc)}\n"


def specs(title, registry):
    """The registered schemes or streams with their parameters."""
    yield f"## {title}\n"
    yield "| name | parameters and defaults | what it is |\n|---|---|---|"
    for name, cls in registry.items():
        given = [
            p["name"] if p["required"] else f"{p['name']}={p['default']}" for p in parameters(cls)
        ]
        what = inspect.cleandoc(cls.__doc__ or "").splitlines()[0].replace("|", "\\|")
        yield f"| `{name}` | {', '.join(f'`{g}`' for g in given) or '–'} | {what} |"
    yield ""


def main():
    """Write the page."""
    parts = ["# Reference\n", "Made from the docstrings by `make docs`.\n"]
    for room, what in ROOMS.items():
        parts += [f"## {room}\n", f"{what}\n"]
        for name, thing in public(room):
            parts += entry(room, name, thing)
    parts += specs("Schemes", SCHEMES)
    parts += specs("Streams", STREAMS)
    page = Path(__file__).parents[1] / "docs" / "reference.md"
    page.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
