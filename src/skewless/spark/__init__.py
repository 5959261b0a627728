"""Skewed keys on Spark: route rows to workers, fold on the workers, merge by key."""

from __future__ import annotations

from skewless.errors import SkewlessError

try:
    import pyspark
except ImportError:
    raise SkewlessError(
        "Spark is not installed: install skewless with its extra, skewless[spark]."
    ) from None

from skewless.spark.input.version import check_version

check_version(pyspark.__version__, "PySpark")

from skewless.spark.diagnose.api import diagnose, diagnose_keys  # noqa: E402
from skewless.spark.diagnose.verify import Verification, verify  # noqa: E402
from skewless.spark.fold.group import Grouping, group  # noqa: E402
from skewless.spark.join.api import join, learn_join  # noqa: E402
from skewless.spark.join.plan import JoinPlan  # noqa: E402
from skewless.spark.lab.compare import Comparison, compare  # noqa: E402
from skewless.spark.map.balanced import balanced_map  # noqa: E402
from skewless.spark.map.before import release  # noqa: E402
from skewless.spark.map.frame import BalancedFrame  # noqa: E402
from skewless.spark.observe.observer import Observer  # noqa: E402
from skewless.spark.routing.learn import learn  # noqa: E402
from skewless.spark.routing.plan import Plan  # noqa: E402
from skewless.spark.routing.route import repartition, route  # noqa: E402
from skewless.spark.state.per_worker import per_worker  # noqa: E402

__all__ = [
    "BalancedFrame",
    "Comparison",
    "Grouping",
    "JoinPlan",
    "Observer",
    "Plan",
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
