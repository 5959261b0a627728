"""What workers compute per key: `count()`, `sum("x")`, … and `PerKeyFold` for your own.

The functions are named as Spark's, so import the package: `from skewless import folds`.
"""

from __future__ import annotations

from skewless.folds.api import Fold, NativeMerge
from skewless.folds.check import check_fold
from skewless.folds.delay import Sleeping as sleeping
from skewless.folds.distinct import DistinctCount as approx_count_distinct
from skewless.folds.distinct import distinct_count
from skewless.folds.extremes import Max as max
from skewless.folds.extremes import Min as min
from skewless.folds.numbers import Count as count
from skewless.folds.numbers import Mean as mean
from skewless.folds.numbers import Sum as sum
from skewless.folds.per_key import PerKeyFold
from skewless.folds.top_k import TopK as top_k

__all__ = [
    "Fold",
    "NativeMerge",
    "PerKeyFold",
    "approx_count_distinct",
    "check_fold",
    "count",
    "distinct_count",
    "max",
    "mean",
    "min",
    "sleeping",
    "sum",
    "top_k",
]
