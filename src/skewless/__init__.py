"""skewless: even work from skewed keys, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewless._version import __version__
from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from skewless.hashing import identities, identity
    from skewless.schemes import SCHEMES
    from skewless.simulate.balance import balance
    from skewless.simulate.sources import route


_WHERE = {
    "balance": "skewless.simulate.balance",
    "route": "skewless.simulate.sources",
    "identities": "skewless.hashing",
    "identity": "skewless.hashing",
    "SCHEMES": "skewless.schemes",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the compiled parts take a second, and `--help` needs none of them."""
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'skewless' has no attribute {name!r}")


__all__ = ["SCHEMES", "SkewlessError", "__version__", "balance", "identities", "identity", "route"]
