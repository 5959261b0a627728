"""Random computations against plain Spark: the same rows, types and errors, or a known refusal.

An ordinary run takes some cases, always the same; `make fuzz MINUTES=n` draws new ones.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tests.spark.drawing import MINUTES, differences
from tests.spark.fuzz import ACTIONS, cases, difference

CASES = 220
LEAST = {"fold": 35, "apply": 12, "map": 12, "route": 8, "place": 8}


@pytest.mark.timeout(60 * MINUTES + 3600)
def test_ours_is_what_spark_gives(spark):
    mine, seen = threading.local(), Counter()

    def compare(case):
        if not hasattr(mine, "session"):
            mine.session = spark.newSession()  # settings are a session's
        return difference(case, mine.session, seen)

    found = differences(cases(), compare, CASES, threads=2)
    assert not found, "\n\n".join(found)
    if not MINUTES:  # refusals of everything would prove nothing
        assert all(seen[action] >= LEAST[action] for action in ACTIONS), seen
