"""How numba compiles a kernel: whole, for Python, or only as far as its callers need it."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder

from skewless.compiled.cache import MachineCode
from skewless.errors import SkewlessError

OLDEST_NUMBA = (0, 61)
NEWEST_NUMBA = (0, 68)  # whose insides are known: a later one compiles all in its own, slower way

_VERSION = tuple(int(part) for part in numba.__version__.split(".")[:2])
if _VERSION < OLDEST_NUMBA:
    raise SkewlessError(
        f"numba is version {numba.__version__}, but skewless needs "
        f"{'.'.join(map(str, OLDEST_NUMBA))} or later: upgrade it with pip install --upgrade numba."
    )

# What numba does for code that kernels have none of: closures, `with`, `None`, literals, array
# expressions, generators.
_UNNEEDED = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteSemanticConstants",
    "DeadBranchPrune",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "NoPythonSupportedFeatureValidation",
    "AnnotateTypes",
    "DumpParforDiagnostics",
}


def alone(
    function: Callable[..., Any], machine_code: MachineCode, options: Mapping[str, Any]
) -> Any:
    """For Python to call, from machine code that is kept."""
    made: Any = numba.njit(no_cfunc_wrapper=True, **_pipeline(_Alone), **options)(function)
    # What numba's own `cache=True` does, with a cache of ours: numba's needs a folder that it can
    # write to and a source file, and an executor may have neither.
    made._cache = machine_code
    return made


def within(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """For functions that numba compiles to call."""
    bare = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return numba.njit(**bare, **_pipeline(_Within), **options)(function)


def _pipeline(wanted: type[Compiler]) -> dict[str, Any]:
    return {"pipeline_class": wanted} if _VERSION <= NEWEST_NUMBA else {}


@functools.cache
def _load_array_functions() -> None:
    """Load what numba loads to compile anything, but for SciPy.

    Numba tries whether SciPy's linear algebra is there by importing it, which takes 0.2 s. That it
    is installed is enough to know: where it is used, numba imports it all the same.
    """
    if importlib.util.find_spec("scipy") is None:
        return
    from numba.np import linalg

    importing, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = importing


class _Alone(Compiler):  # type: ignore[misc]
    def __init__(self, *args: Any, **options: Any) -> None:
        _load_array_functions()
        super().__init__(*args, **options)

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [p for p in passes.passes if p[0].__name__ not in _UNNEEDED]
        passes.finalize()
        return [passes]


class _Within(_Alone):
    def define_pipelines(self) -> list[Any]:
        codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
        self.state.library = _Part(codegen, name)
        return super().define_pipelines()


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that goes into whatever calls it.

    Numba would optimise it together with all that it calls, and do so again in every caller of its
    callers. Here each function is only simplified by itself before it goes into another.
    """

    def _optimize_final_module(self) -> None:
        """Left to the function that Python calls."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _NO_MACHINE


class _NoMachine:
    """What takes the place of the engine that runs machine code, where there is none."""

    def set_env(self, name: str, env: Any) -> None:
        """The caller's machine code gets it: see `MachineCode.save_overload`."""


_NO_MACHINE = _NoMachine()
