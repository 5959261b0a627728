"""O-apx: keys packed by their true frequency, largest first; the bound of distribution-aware.

Rivetti et al. (DEBS 2015), section 5.1. It is off-greedy under the name of another paper, with
that paper's quadratic cost as an option: route the part of the stream that is to be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from skewless.schemes.off_greedy import OfflineGreedy


@dataclass(frozen=True)
class OptimalApproximation(OfflineGreedy):
    """Optimal approximation (O-apx).

    cost: `linear`, a key's load is its count; `quadratic`, its square.
    """

    cost: Literal["linear", "quadratic"] = "linear"

    name: ClassVar[str] = "o-apx"

    def load_of(self, counts: Any) -> Any:
        """The load that a key of that count brings."""
        return counts if self.cost == "linear" else counts.astype(float) ** 2
