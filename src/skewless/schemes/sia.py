"""SIA: single instance allocation, the worst balance there is (Rivetti et al., section 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skewless.compiled import inlined
from skewless.schemes.api import RouteTable
from skewless.schemes.key import KeyGrouping, KeyPlan


@inlined
def choose(plan: Any, tally: Any, key: np.uint64, weight: float, now: float) -> int:
    """The first worker."""
    return 0


@dataclass(frozen=True)
class SingleInstanceAllocation(KeyGrouping):
    """Everything to one worker: 100 · (W − 1) per cent of imbalance."""

    name: ClassVar[str] = "sia"
    choose: ClassVar[Any] = staticmethod(choose)

    def table(self, plan: KeyPlan) -> RouteTable:
        """One bucket, the first worker's."""
        return super().table(plan)._replace(buckets=np.zeros(1, np.int32))
