"""Applications of split keys: heavy hitters, top-k, trending, naive Bayes, decision trees.

Each takes the DataFrame that you have, a batch or a stream; docs/applications.md shows them all.
"""

from __future__ import annotations

from skewless.apps.decision_tree import DecisionTree
from skewless.apps.heavy_hitters import heavy_hitters
from skewless.apps.naive_bayes import NaiveBayes
from skewless.apps.top_k import top_k
from skewless.apps.trending import trending

__all__ = ["DecisionTree", "NaiveBayes", "heavy_hitters", "top_k", "trending"]
