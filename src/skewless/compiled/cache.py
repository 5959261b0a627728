"""The machine code of one compiled function, as numba asks for it."""

from __future__ import annotations

import hashlib
import importlib.resources
import pickle
import sys
from collections.abc import Iterator
from functools import cache
from importlib.resources.abc import Traversable
from types import FunctionType
from typing import Any

import llvmlite
import numba
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from skewless.compiled.outside import from_outside
from skewless.compiled.store import STORE

# Every compiled function lies in one of these: machine code is of no use once any of them changed,
# for a function knows nothing of the sources of those that were inlined into it.
ROOMS = ("compiled", "hashing", "sketch", "schemes", "streams", "folds", "simulate", "papers")


class MachineCode(_Cache):  # type: ignore[misc]
    """Finds and keeps machine code by what the function, its types and the machine are."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._used: dict[str, bytes] = {}

    @property
    def cache_path(self) -> str:
        """Where it is kept, for numba's statistics."""
        return str(STORE.folder or "")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function for these types, or None: then numba compiles it, and saves it."""
        name = self._name(sig, target_context.codegen())
        data = STORE.get(name) or STORE.await_or_claim(name)
        if data is None:
            return None
        self._used[name] = data
        # All that machine code needs of the context. Numba's own cache has it load what compiling
        # takes, SciPy's linear algebra among it: 0.6 s.
        rtsys.initialize(target_context)
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep what was compiled."""
        for env in cres._find_referenced_environments():
            cres.library.codegen.set_env(env.env_name, env)  # of functions within it
        name = self._name(sig, cres.library.codegen)
        if cres.lifted or cres.library.has_dynamic_globals:
            STORE.release(name)
            return  # bound to addresses of this process
        data = dumps(cres._reduce())
        self._used[name] = data
        STORE.put(name, data)

    def entries(self) -> dict[str, bytes]:
        """What was loaded or compiled so far, by name."""
        return dict(self._used)

    def enable(self) -> None:
        """Always on."""

    def disable(self) -> None:
        """Always on."""

    def flush(self) -> None:
        """Entries are never wrong: their names say what they were made of."""

    def _name(self, sig: Any, codegen: Any) -> str:
        function = self._function
        facts = (
            digest_of_sources(),
            from_outside(function),
            function.__module__,
            function.__qualname__,
            function.__code__.co_firstlineno,
            str(sig),
            codegen.magic_tuple(),
            (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag),
        )
        digest = hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()
        return f"{function.__name__[:40].strip('<>')}-{digest}"


@cache
def digest_of_sources() -> str:
    """A digest of every file that a compiled function may come from, also inside a zip."""
    package = importlib.resources.files("skewless")
    digest = hashlib.blake2b(digest_size=16)
    for room in ROOMS:
        for source in _sources(package / room):
            digest.update(source.name.encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()


def _sources(place: Traversable) -> Iterator[Traversable]:
    if place.is_file():
        yield place
        return
    for inner in sorted(place.iterdir(), key=lambda entry: entry.name):
        if inner.is_dir() or inner.name.endswith(".py"):
            yield from _sources(inner)
