"""What a stream keeps of what it learned when a restart changes its workers, seed or scheme.

Which keys are hot, how often they came and how wide they are says nothing of a single worker, so
it holds for any number of them. What single workers were sent, and where keys were put, does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skewless.schemes import Scheme
from skewless.spark.adapt.plans import Learned


def carried(before_scheme: Scheme, before: Learned, scheme: Scheme, first: Learned) -> Learned:
    """A first plan with what still holds; `first` itself where schemes differ in more than numbers.

    The messages since the start of the stream are shared out evenly.
    """
    workers = first.loads.size
    same_workers = before.loads.size == workers
    loads = before.loads if same_workers else np.full(workers, before.loads.sum() / workers)
    first = first._replace(loads=loads)
    if type(before_scheme) is not type(scheme):
        return first
    plan: Any = first.plan
    old: Any = before.plan
    named: dict[str, Any] = {}
    if _holds(plan, "head_keys", "head_counts", "head_total") and not _known(plan.head_keys):
        named = {name: getattr(old, name) for name in ("head_keys", "head_counts", "head_total")}
    elif _holds(plan, "keys", "counts", "widths", "warm", "most_workers") and not _known(plan.keys):
        most = min(workers, int(plan.most_workers[0]))
        named = {
            "warm": old.warm,
            "keys": old.keys,
            "counts": old.counts,
            "widths": np.minimum(old.widths, most),
        }
    elif _holds(plan, "hashes", "known") and _same_costs(plan, old):
        named = {"known": old.known}
    if _holds(plan, "start") and plan.start.size == workers:
        # Where loads are shares of all that was sent, their sum counts; elsewhere what is uneven.
        if same_workers:
            shared = [name for name in ("start", "sources") if _holds(plan, name)]
            named |= {name: getattr(old, name) for name in shared}
        elif "widths" in named:
            named["start"] = np.full(workers, old.start.sum() / workers)
    return first._replace(plan=plan._replace(**named)) if named else first


def _holds(plan: Any, *names: str) -> bool:
    return set(names) <= set(getattr(plan, "_fields", ()))


def _known(keys: Any) -> bool:
    """Whether the plan that the user gave names keys itself."""
    return bool(keys.size)


def _same_costs(plan: Any, old: Any) -> bool:
    """Whether both count costs by the same hashes, which the seed draws."""
    return plan.known.shape == old.known.shape and np.array_equal(plan.hashes, old.hashes)
