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

from skewless.spark.balanced import balanced_map, release  # noqa: E402
from skewless.spark.compare import Comparison, compare  # noqa: E402
from skewless.spark.diagnose import diagnose, diagnose_keys  # noqa: E402
from skewless.spark.group import Grouping, group  # noqa: E402
from skewless.spark.join.api import join, learn_join  # noqa: E402
from skewless.spark.join.plan import JoinPlan  # noqa: E402
from skewless.spark.learn import learn  # noqa: E402
from skewless.spark.observe import Observer  # noqa: E402
from skewless.spark.per_worker import per_worker  # noqa: E402
from skewless.spark.route import repartition, route  # noqa: E402
from skewless.spark.verify import Verification, verify  # noqa: E402

__all__ = [
    "Comparison",
    "Grouping",
    "JoinPlan",
    "Observer",
    "Verification",
    "balanced_map",
    "compare",
    "diagnose",
    "diagnose_keys",
    "group",
    "join",
    "learn",
    "learn_join",
    "per_worker",
    "release",
    "repartition",
    "route",
    "verify",
]
