"""Random computations against plain Spark: the same rows, types and errors, or a known refusal.

An ordinary run takes a few cases, always the same; `make fuzz MINUTES=n` draws new ones.
"""

from __future__ import annotations

import os
import time

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.spark.fuzz import cases, difference

MINUTES = float(os.environ.get("SKEWLESS_FUZZ_MINUTES", "0"))
CASES = int(os.environ.get("SKEWLESS_FUZZ_CASES", "40"))


@pytest.mark.timeout(60 * MINUTES + 600)
def test_ours_is_what_spark_gives(spark):
    ends_s = time.monotonic() + 60 * MINUTES
    found, count = [], 0

    @settings(
        max_examples=1_000_000 if MINUTES else CASES,
        derandomize=not MINUTES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def compare(case):
        nonlocal count
        if MINUTES and time.monotonic() > ends_s:
            raise KeyboardInterrupt
        count += 1
        said = difference(case, spark)
        if said is not None:
            found.append(f"{case}\n    {said}")
            print(f"\n=== {found[-1]}", flush=True)

    try:
        compare()
    except KeyboardInterrupt:
        if not MINUTES:
            raise
    print(f"\n{count} cases, {len(found)} differences")
    assert not found, "\n\n".join(found)
