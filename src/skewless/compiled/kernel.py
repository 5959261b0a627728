"""A compiled function, as Python calls it and as other compiled functions do.

Numba compiles a function by itself: it turns the LLVM code into machine code, wraps that for Python
and optimises both, before the function that called for it is compiled, into which it goes once
more. Here a function that compiled code calls is left as LLVM code, which only its callers turn
into machine code; a function that Python calls is wrapped, and kept. Most of the functions of a
run are called in one of the two ways only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from skewless.compiled.cache import MachineCode


class Kernel:
    """A function that is compiled when it is first called; numba is not loaded before."""

    __qualname__: str

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        """`options` are numba's."""
        self._function = cast(FunctionType, function)
        self._options = options
        functools.update_wrapper(self, function)

    @property
    def py_func(self) -> FunctionType:
        """The function as it was written."""
        return self._function

    def __call__(self, *args: Any) -> Any:
        """Call it from Python."""
        return self._called_by_python(*args)

    @functools.cached_property
    def _called_by_python(self) -> Any:
        from skewless.compiled.build import alone

        return alone(self._function, self.machine_code, self._options)

    @functools.cached_property
    def machine_code(self) -> MachineCode:
        """What Python called so far."""
        from skewless.compiled.cache import MachineCode

        return MachineCode(self._function)

    @functools.cached_property
    def _called_by_compiled_code(self) -> Any:
        from skewless.compiled.build import within

        return within(self._function, self._options)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for where a function that it compiles names it."""
        return self._called_by_compiled_code._numba_type_

    def __reduce__(self) -> Any:
        """By name, unless it has none that others could find it by."""
        if getattr(sys.modules.get(self.__module__), self.__qualname__, None) is self:
            return self.__qualname__
        return functools.partial(Kernel, **self._options), (self._function,)

    def __repr__(self) -> str:
        return f"<compiled {self.__module__}.{self.__qualname__}>"
