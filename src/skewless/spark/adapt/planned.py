"""What a plan says of single keys: how many it names, how many of them it splits, how widely."""

from __future__ import annotations

from typing import Any

import numpy as np

from skewless.live import PlanFacts
from skewless.schemes import Scheme


def plan_facts(scheme: Scheme, plan: Any) -> PlanFacts | None:
    """The keys that a plan names; None for a plan that is not about single keys."""
    widths = _widths(scheme, plan)
    if widths is None:
        heads = getattr(plan, "head_keys", None)
        return None if heads is None else PlanFacts(int(heads.size), None, None)
    widest = int(widths.max()) if widths.size else 1
    return PlanFacts(int(widths.size), int((widths > 1).sum()), widest)


def _widths(scheme: Scheme, plan: Any) -> np.ndarray[Any, Any] | None:
    """How many workers each key has that the plan names."""
    if hasattr(plan, "widths"):
        return np.asarray(plan.widths)
    table = scheme.table(plan)
    if table is not None:
        slots = np.split(table.head_workers, table.head_starts[1:-1])
        return np.array([np.unique(workers).size for workers in slots[: table.heads.size]])
    workers = getattr(plan, "head_workers", None)
    if workers is None or workers.ndim != 2:
        return None
    return np.array([np.unique(row).size for row in workers])
