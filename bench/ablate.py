"""Each constant of graded choices taken away, halved and doubled: which of them matter.

What is counted, over streams × W × sources: the cases whose second half meets max/mean ≤ 1.01 with
every seed, and the geometric mean of the excess copies relative to the constants as they are.
"""

from collections.abc import Callable, Iterator

import numpy as np

from skewless.schemes import Scheme
from variants import variant

# Each as good as absent, halved and doubled.
SETTINGS: dict[str, tuple[float, float, float]] = {
    "AIM": (0.0, 0.175, 0.7),
    "FEW": (0.0, 0.75, 3.0),
    "ENOUGH": (1e-9, 0.025, 0.1),
    "HOT": (1e9, 1 / 8, 1 / 2),
    "half_life": (1e7, 4_000.0, 16_000.0),
    "PATIENCE": (0.0, 0.5, 2.0),
    "LEAST": (0.0, 0.25, 1.0),
    "ROUND": (1, 32, 128),
    "PLACES": (1, 1 << 13, 1 << 15),
}
CHANGES = ("removed", "halved", "doubled")
TARGET = 0.01
LEAST_EXCESS = 1e-4  # copies per key: below that a ratio says nothing

Case = tuple[str, int, int]  # stream, workers, sources
Outcome = dict[Case, tuple[float, float]]  # unevenness (worst seed), copies per key (mean)


def met(outcome: Outcome) -> int:
    """The cases in which the target was met with every seed."""
    return sum(uneven <= TARGET for uneven, _ in outcome.values())


def excess_ratio(outcome: Outcome, other: Outcome) -> float:
    """The geometric mean of excess copies relative to another outcome's."""
    pairs = [(outcome[case][1] - 1, copies - 1) for case, (_, copies) in other.items()]
    return float(
        np.exp(np.mean([np.log((a + LEAST_EXCESS) / (b + LEAST_EXCESS)) for a, b in pairs]))
    )


def ablated(outcome_of: Callable[[Scheme], Outcome]) -> Iterator[dict[str, str]]:
    """A row per constant and change, the constants as they are first."""
    now = outcome_of(variant())
    yield row("all", "as they are", now, now)
    for name, values in SETTINGS.items():
        for change, value in zip(CHANGES, values, strict=True):
            yield row(name, f"{change}: {value:g}", outcome_of(variant(**{name: value})), now)


def row(name: str, change: str, outcome: Outcome, now: Outcome) -> dict[str, str]:
    return {
        "constant": name,
        "change": change,
        "cases met": f"{met(outcome)} of {len(outcome)}",
        "excess copies": f"{excess_ratio(outcome, now):.3f}",
    }
