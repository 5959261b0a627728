"""Random joins with hot keys against Spark's own: the same rows, columns, names and nullability.

An ordinary run takes a few cases, always the same; `make fuzz MINUTES=n` draws new ones.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.spark.drawing import MINUTES, differences
from tests.spark.fuzz_joins import cases, difference


@pytest.mark.timeout(60 * MINUTES + 3600)
def test_a_join_is_what_spark_gives(spark):
    splits = Counter()
    found = differences(cases(), lambda case: difference(case, spark, splits), 14)
    print(dict(splits))
    assert not found, "\n\n".join(found)
    assert splits["split"] >= 4, splits  # else nothing was proved
