"""What the seed decides: which scheme, how many workers."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from skewless.schemes import SCHEMES
from tests.chaos.streams import COUNTERS, LEARNERS, Setting

ON_SPARK = sorted(
    name for name, kind in SCHEMES.items() if kind.learns != "stream" and not kind.coordinated
)
PAPERS = ("key", "partial", "shuffle")


def drawn_setting(
    drawn: random.Random, what: str, number: int, before: Setting | None = None, **more: Any
) -> Setting:
    """A setting for this kind of work; schemes come in turn, so that each has its round."""
    kept = before is not None and what in ("per_worker", "join", *LEARNERS, *COUNTERS)
    if kept and before is not None:
        return replace(before, **more)
    schemes = ON_SPARK
    if what in COUNTERS:
        schemes = list(PAPERS)
    elif what == "balanced_map":
        schemes = ["proactive", "shuffle"]
    scheme = schemes[number % len(schemes)]
    workers = drawn.randint(2, 3 if what == "per_worker" else 5)
    return Setting(what, scheme, workers, drawn.randint(0, 9), **more)
