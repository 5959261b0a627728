"""Sights for tests of the live page."""

from __future__ import annotations

import time
from typing import Any

from skewless.live import Sight


def sight(query: str, batch: int | None, loads: Any = (5, 5), **more: Any) -> Sight:
    """What a batch of a query could have shown."""
    loads = list(loads)
    messages = sum(loads)
    given = {
        "query": query,
        "name": query,
        "scheme": "graded",
        "batch": batch,
        "ended_s": time.time(),
        "messages": messages,
        "loads": loads,
        "busy_s": [load / 1000 for load in loads],
        "max_over_mean": max(loads) * len(loads) / max(messages, 1),
        "stddev_percent": 1.5,
        "replication": 1.25,
        "seconds": 0.5,
        "messages_per_second": 2.0 * messages,
    }
    return Sight(**(given | more))
