"""Naive Bayes: categorical, multinomial and Gaussian, from a batch or a stream.

Partial Key Grouping, section 4. What a model needs are sums by (feature, value, class), and some
features and values are far more frequent than others: so rows are routed by that key, hot ones are
split over workers, and the partial sums merged.
"""

from __future__ import annotations

from skewless.apps.naive_bayes.api import NaiveBayes
from skewless.apps.naive_bayes.model import NaiveBayesModel
from skewless.apps.naive_bayes.stream import BayesLearner

__all__ = ["BayesLearner", "NaiveBayes", "NaiveBayesModel"]
