"""Random computations against plain Spark: the same rows, types and errors, or a known refusal.

An ordinary run takes a few cases, always the same; `make fuzz MINUTES=n` draws new ones.
"""

from __future__ import annotations

import pytest

from tests.spark.drawing import MINUTES, differences
from tests.spark.fuzz import cases, difference


@pytest.mark.timeout(60 * MINUTES + 600)
def test_ours_is_what_spark_gives(spark):
    found = differences(cases(), lambda case: difference(case, spark), 30)
    assert not found, "\n\n".join(found)
