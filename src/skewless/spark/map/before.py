"""How `balanced_map` was called before 0.3, which still works, with a warning, until 0.4."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from pyspark.sql import DataFrame

from skewless.errors import SkewlessError
from skewless.spark.map.frame import BalancedFrame

Called = TypeVar("Called", bound=Callable[..., Any])
_OLD_ORDER = ("df", "function", "key", "workers", "schema")
_NEW_PLACES = 3


def also_in_the_old_order(balanced_map: Called) -> Called:
    """Take `balanced_map(df, function, cost_key, workers, schema)` too."""

    @wraps(balanced_map)
    def called(*args: Any, **options: Any) -> Any:
        in_order = len(args) <= _NEW_PLACES
        if (in_order and "cost_key" not in options) or len(args) > len(_OLD_ORDER):
            return balanced_map(*args, **options)
        warnings.warn(
            "balanced_map takes its arguments in the order of mapInArrow now: call "
            "balanced_map(df, function, schema, key=…, workers=…); the old order ends in 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        if "cost_key" in options:
            options["key"] = options.pop("cost_key")
        if in_order:
            return balanced_map(*args, **options)
        return balanced_map(**dict(zip(_OLD_ORDER, args, strict=False)), **options)

    return cast(Called, called)


def release(result: DataFrame) -> None:
    """Free the first wave of a result of `balanced_map`. Deprecated: it ends in 0.4.

    The result does so by itself when it is dropped, or at the end of `with balanced_map(…) as …:`.
    """
    warnings.warn(
        "release is not needed any more: the first wave is freed when the result of balanced_map "
        "is dropped, or at the end of `with balanced_map(…) as result:`; release ends in 0.4.",
        DeprecationWarning,
        stacklevel=2,
    )
    if not isinstance(result, BalancedFrame):
        raise SkewlessError(
            "This DataFrame is not the one that balanced_map gave: keep that one, and hand it to "
            "release rather than what was derived from it."
        )
    result.__exit__(None, None, None)
