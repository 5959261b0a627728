"""Whether a plan that was read fits together: one that does not might lose or double rows."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from skewless.spark.join.plan import JoinPlan

_MOST_PARTITIONS = 1 << 31


def checked(plan: JoinPlan) -> JoinPlan:
    """The plan; ValueError if its parts contradict each other."""
    sizes, keys = plan.sizes, len(plan.slots)
    for name in ("left_rows", "right_rows", "left_nulls", "right_nulls"):
        _hold(_is_number(getattr(sizes, name)))
    for name in ("result_weight", "target"):
        _hold(_is_number(getattr(plan.choices, name)))
    for name in ("exists", "split_left", "split_right", "distinct"):
        _hold(isinstance(getattr(plan.choices, name), bool))
    _hold(isinstance(plan.distinct, bool) and isinstance(plan.plain, str))
    _hold(type(sizes.partitions) is int and 0 < sizes.partitions < _MOST_PARTITIONS)
    _hold(_texts(sizes.names) and len(sizes.names) == keys)
    _hold(_texts(plan.types) and len(plan.types) == len(plan.pairs) > 0)
    _hold(all(_texts(pair) for pair in plan.pairs))
    by_key = (sizes.identities, sizes.hashes, sizes.left, sizes.right)
    _hold(all(_one_row(part, keys) for part in (*by_key, plan.stripes_left, plan.stripes_right)))
    each = (sizes.cold_left, sizes.cold_right, sizes.cold_results, plan.loads, plan.plain_loads)
    _hold(all(_one_row(part, sizes.partitions) for part in each))
    # A cell is met by its slot: two of one slot would let a pair of rows meet twice.
    for slots, a, b in zip(plan.slots, plan.stripes_left, plan.stripes_right, strict=True):
        _hold(a >= 1 and b >= 1 and slots.ndim == 1 and slots.size == a * b)
        _hold(np.unique(slots).size == slots.size)
    for nulls in (plan.null_slots_left, plan.null_slots_right):
        _hold(nulls.ndim == 1 and np.unique(nulls).size == nulls.size)
    return plan


def _hold(true: Any) -> None:
    if not true:
        raise ValueError("the plan contradicts itself")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and bool(np.isfinite(float(value)))


def _texts(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) for value in values)


def _one_row(values: Any, size: int) -> bool:
    return isinstance(values, np.ndarray) and values.shape == (size,) and values.dtype.kind in "iuf"
