"""Slow, obvious twins of the compiled kernels; they share no helper with the package.

`TWINS[name].route(scheme, keys, workers, seed, source)` routes one source under the first plan.
"""

from importlib import import_module
from types import ModuleType

from skewless.schemes import SCHEMES

TWINS: dict[str, ModuleType] = {
    name: import_module(f"tests.naive.{name.replace('-', '_')}") for name in SCHEMES
}
