"""NamedTuples of arrays as bytes: no pickle, so that a folder of plans can run no code.

The bytes hold the arrays in order and a few facts; the shape of the tuples comes from a template.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def flatten(state: Any) -> Iterator[Array]:
    """The arrays of nested NamedTuples, in order."""
    if isinstance(state, tuple):
        for part in state:
            yield from flatten(part)
    else:
        yield state


def rebuild(template: Any, arrays: Iterator[Array]) -> Any:
    """The arrays in the shape of the template."""
    if not isinstance(template, tuple):
        return next(arrays)
    parts = [rebuild(part, arrays) for part in template]
    return template._make(parts) if hasattr(template, "_make") else tuple(parts)


def pack(facts: Mapping[str, Any], *states: Any) -> bytes:
    """Facts and states as bytes."""
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(dict(facts)).encode(), np.uint8)
    np.savez(out, text, *(array for state in states for array in flatten(state)))
    return out.getvalue()


def unpack(data: bytes, *templates: Any) -> tuple[dict[str, Any], list[Any]]:
    """What was packed: the facts, and a state in the shape of each template."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = [held[f"arr_{i}"] for i in range(len(held.files))]
    rest = iter(arrays[1:])
    return json.loads(arrays[0].tobytes()), [rebuild(template, rest) for template in templates]
