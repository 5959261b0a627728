"""What a user asks for: which columns, which kind of model, and how to learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from skewless.apps.columns import check_batch, feature_names, label_name
from skewless.apps.naive_bayes.model import NaiveBayesModel, model_of
from skewless.apps.naive_bayes.statistics import (
    CATEGORICAL,
    GAUSSIAN,
    MULTINOMIAL,
    WORDS,
    statistics,
)
from skewless.apps.naive_bayes.stream import BayesLearner
from skewless.errors import SkewlessError, unknown
from skewless.schemes import Scheme

KINDS = (CATEGORICAL, MULTINOMIAL, WORDS, GAUSSIAN)


@dataclass(frozen=True)
class NaiveBayes:
    """A naive Bayes classifier of rows; `fit` learns from a batch, `learner` from a stream.

    label: the column of classes: text, whole numbers or booleans. Rows without one are left out
    features: names of columns. A null says nothing of its feature, in learning and in predicting;
        nor does a NaN or an infinite number
    kind: "categorical" (text, whole numbers, booleans or dates as names), "multinomial" (columns
        of counts), "words" (multinomial too, of one column of arrays of text, each element of
        which counts 1), or "gaussian" (numbers)
    alpha: added to every count (Laplace's is 1), so that what was never seen is not impossible;
        for all kinds but "gaussian"
    var_smoothing: this share of the largest variance of a feature is added to all; for "gaussian"
    """

    label: str
    features: Sequence[str]
    kind: str = CATEGORICAL
    alpha: float = 1.0
    var_smoothing: float = 1e-9

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of naive Bayes", self.kind, KINDS)
        object.__setattr__(self, "label", label_name(self.label))
        object.__setattr__(self, "features", feature_names(self.label, self.features))
        for what, value in (("alpha", self.alpha), ("var_smoothing", self.var_smoothing)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < float("inf") or (what == "alpha" and not value):
                least = "above 0" if what == "alpha" else "of 0 or more"
                raise SkewlessError(f"{what} is a number {least}, not {value!r}.")

    def statistics(
        self,
        df: DataFrame,
        scheme: Scheme | str = "partial",
        workers: int | None = None,
        *,
        seed: int = 0,
    ) -> pa.Table:
        """The sums that make a model: feature, value, label, n, mean and m2; runs one job."""
        return statistics(df, self.label, list(self.features), self.kind, scheme, workers, seed)

    def fit(
        self,
        df: DataFrame,
        scheme: Scheme | str = "partial",
        workers: int | None = None,
        *,
        seed: int = 0,
    ) -> NaiveBayesModel:
        """Learn from a batch; runs one job.

        scheme, workers, seed: as for `skewless.spark.group`
        """
        check_batch(df)
        return self.model(self.statistics(df, scheme, workers, seed=seed))

    def model(self, counts: pa.Table) -> NaiveBayesModel:
        """The model of statistics that are here."""
        return model_of(counts, tuple(self.features), self.kind, self.alpha, self.var_smoothing)

    def learner(
        self, folder: str, scheme: Scheme | str = "partial", workers: int | None = None
    ) -> BayesLearner:
        """A learner for streams: pass it to `writeStream.foreachBatch`.

        folder: where the statistics are kept after each micro-batch, so that one which runs again
            counts once; of the driver's file system
        """
        return BayesLearner(self, folder, scheme, workers)
