"""Skewed keys on Spark: route rows to workers, fold on the workers, merge by key."""

from __future__ import annotations

from skewless.errors import SkewlessError

try:
    import pyspark
except ImportError:
    raise SkewlessError(
        "Spark is not installed: install skewless with its extra, skewless[spark]."
    ) from None

from skewless.spark.version import check_version

check_version(pyspark.__version__, "PySpark")

from skewless.spark.group import Grouping, group  # noqa: E402
from skewless.spark.route import repartition, route  # noqa: E402

__all__ = ["Grouping", "group", "repartition", "route"]
