"""NamedTuples of arrays as bytes: no pickle, so that a folder of plans can run no code.

Each array is kept under the names of the fields that lead to it, so that another version, whose
tuples have other fields, refuses the bytes instead of taking one array for another. The shape of
the tuples comes from a template. A field with a default was added later: what an earlier version
kept is read with the default.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_FACTS = "facts"


class UnreadableError(ValueError):
    """The bytes are damaged, or of another version: says which."""


def flatten(state: Any) -> Iterator[Array]:
    """The arrays of nested NamedTuples, in order."""
    return (array for _, array in _named(state, ""))


def pack(facts: Mapping[str, Any], *states: Any) -> bytes:
    """Facts and states as bytes."""
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(dict(facts)).encode(), np.uint8)
    arrays: dict[str, Any] = {_FACTS: text}
    for i, state in enumerate(states):
        arrays.update(_named(state, i))
    np.savez(out, **arrays)
    return out.getvalue()


def unpack(data: bytes, *templates: Any) -> tuple[dict[str, Any], list[Any]]:
    """What was packed: the facts, and a state in the shape of each template."""
    found = _arrays(data)
    added = dict(pair for i, template in enumerate(templates) for pair in _added(template, i))
    if "arr_0" in found:
        found = _by_name(found, templates, added)
    found = {**added, **found}
    wanted = dict(pair for i, template in enumerate(templates) for pair in _named(template, i))
    other = sorted(found.keys() ^ {_FACTS, *wanted})
    other += [name for name, array in wanted.items() if not _alike(array, found.get(name))]
    if other:
        raise UnreadableError(f"of another version (its field '{other[0].split('.', 1)[-1]}')")
    states = [_rebuilt(template, i, found) for i, template in enumerate(templates)]
    return _facts(found), states


def facts_of(data: bytes) -> dict[str, Any]:
    """The facts alone, which say what the templates are."""
    return _facts(_arrays(data))


def _arrays(data: bytes) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if file.testzip() is not None:
                raise UnreadableError("damaged")
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            return {name: held[name] for name in held.files}
    except Exception as error:  # a flipped bit may end in nearly any of zipfile's and NumPy's
        raise UnreadableError("damaged") from error


def _facts(found: Mapping[str, Array]) -> dict[str, Any]:
    try:
        return dict(json.loads(found[_FACTS].tobytes()))
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError("damaged") from error


def _named(state: Any, path: object) -> Iterator[tuple[str, Array]]:
    if not isinstance(state, tuple):
        yield str(path), state
        return
    for name, part in zip(getattr(state, "_fields", range(len(state))), state, strict=True):
        yield from _named(part, f"{path}.{name}")


def _added(state: Any, path: object) -> Iterator[tuple[str, Array]]:
    """Fields that the first version with these tuples did not have, with their defaults."""
    if not isinstance(state, tuple):
        return
    defaults = getattr(state, "_field_defaults", {})
    for name, part in zip(getattr(state, "_fields", range(len(state))), state, strict=True):
        if name in defaults:
            yield from _named(defaults[name], f"{path}.{name}")
        else:
            yield from _added(part, f"{path}.{name}")


def _rebuilt(template: Any, path: object, found: Mapping[str, Array]) -> Any:
    if not isinstance(template, tuple):
        return found[str(path)]
    names = getattr(template, "_fields", range(len(template)))
    parts = [_rebuilt(t, f"{path}.{n}", found) for n, t in zip(names, template, strict=True)]
    return template._make(parts) if hasattr(template, "_make") else tuple(parts)


def _by_name(
    found: Mapping[str, Array], templates: tuple[Any, ...], added: Mapping[str, Array]
) -> dict[str, Array]:
    """What format 1 kept, which had no names: the arrays in the order of its fields."""
    names = [name for i, template in enumerate(templates) for name, _ in _named(template, i)]
    names = [name for name in names if name not in added]
    arrays = [found[f"arr_{i}"] for i in range(len(found))]
    if len(arrays) != len(names) + 1:
        raise UnreadableError("of another version")
    return dict(zip([_FACTS, *names], arrays, strict=True))


def _alike(wanted: Array, found: Array | None) -> bool:
    return found is None or (wanted.dtype == found.dtype and wanted.ndim == found.ndim)
