"""Draw cases and compare: always the same few in an ordinary run, new ones for `make fuzz`."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

# Many short runs rather than a long one, in which hypothesis varies what it has drawn.
AT_ONCE = 20
MINUTES = float(os.environ.get("SKEWLESS_FUZZ_MINUTES", "0"))


def differences(
    strategy: Any, compare: Callable[[Any], str | None], cases: int, threads: int = 1
) -> list[str]:
    """What is otherwise than it should be, in words; all that was found, not only the first.

    threads: that compare at once; a case mostly waits for Spark to plan and to start tasks
    """
    ends_s = time.monotonic() + 60 * MINUTES
    found: list[str] = []
    known: set[str] = set()
    compared = 0

    def one(case: Any) -> int:
        if MINUTES and time.monotonic() > ends_s:
            return 0
        said = compare(case)
        if said is not None:
            found.append(f"{case}\n    {said}")
            print(f"\n=== {found[-1]}", flush=True)
        return 1

    with ThreadPoolExecutor(threads) as pool:
        for start in count() if MINUTES else range(0, cases, AT_ONCE):
            at_once = AT_ONCE if MINUTES else min(AT_ONCE, cases - start)
            chosen = drawn(strategy, at_once, random.getrandbits(64) if MINUTES else start)
            new = {repr(case): case for case in chosen if repr(case) not in known}
            known.update(new)  # each run begins with the simplest case
            compared += sum(pool.map(one, new.values()))
            if MINUTES and time.monotonic() > ends_s:
                break
    print(f"\n{compared} cases, {len(found)} differences", flush=True)
    return found


def drawn(strategy: Any, cases: int, number: int) -> list[Any]:
    """Some cases, always the same for a number."""
    chosen: list[Any] = []

    def keep(case: Any) -> None:
        chosen.append(case)

    draw = seed(number)(given(strategy)(keep))
    settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(draw)()
    return chosen
