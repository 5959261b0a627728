"""Draw cases and compare: always the same few in an ordinary run, new ones for `make fuzz`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

MINUTES = float(os.environ.get("SKEWLESS_FUZZ_MINUTES", "0"))


def differences(strategy: Any, compare: Callable[[Any], str | None], cases: int) -> list[str]:
    """What is otherwise than it should be, in words; all that was found, not only the first."""
    ends_s = time.monotonic() + 60 * MINUTES
    found: list[str] = []
    count = 0

    def one(case: Any) -> None:
        nonlocal count
        if not MINUTES or time.monotonic() < ends_s:
            count += 1
            said = compare(case)
            if said is not None:
                found.append(f"{case}\n    {said}")
                print(f"\n=== {found[-1]}", flush=True)

    # Many short runs rather than a long one, in which hypothesis varies what it has drawn.
    while True:
        drawn = given(strategy)(one)
        drawn = seed(random.getrandbits(64))(drawn) if MINUTES else drawn
        settings(
            max_examples=cases,
            derandomize=not MINUTES,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(drawn)()
        if not MINUTES or time.monotonic() > ends_s:
            break
    print(f"\n{count} cases, {len(found)} differences", flush=True)
    return found
