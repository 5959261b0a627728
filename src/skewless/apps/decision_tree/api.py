"""What a user asks for: which columns, how deep a tree, and how to learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, NumericType

from skewless.apps.columns import (
    check_batch,
    check_label,
    exact_field,
    feature_names,
    label_name,
    label_type,
)
from skewless.apps.decision_tree.grow import Held, add, collected, grouped, grow, messages
from skewless.apps.decision_tree.model import DecisionTreeModel
from skewless.apps.decision_tree.splits import CRITERIA
from skewless.apps.decision_tree.stream import TreeLearner
from skewless.apps.decision_tree.tree import Tree
from skewless.arguments import whole
from skewless.errors import SkewlessError, unknown
from skewless.schemes import Scheme
from skewless.spark.input.checks import check_server


@dataclass(frozen=True)
class DecisionTree:
    """A decision tree of numbers; `fit` learns from a batch, `learner` from a stream.

    label: the column of classes: text, whole numbers or booleans. Rows without one are left out
    features: names of columns of numbers or booleans. A null, a NaN or an infinite number does not
        count in learning; in predicting it goes the way of most rows
    depth: splits from the root to a leaf, at most
    criterion: what a split is to lessen, "gini" or "entropy" (information gain)
    bins: points of a histogram; one with as many values or fewer is exact
    least_rows: what a leaf must have to be split
    """

    label: str
    features: Sequence[str]
    depth: int = 5
    criterion: str = "gini"
    bins: int = 64
    least_rows: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", label_name(self.label))
        object.__setattr__(self, "features", feature_names(self.label, self.features))
        if self.criterion not in CRITERIA:
            raise unknown("criterion", self.criterion, CRITERIA)
        for what, least in (("depth", 1), ("bins", 2), ("least_rows", 2)):
            if whole(what, getattr(self, what)) < least:
                raise SkewlessError(f"{what} must be at least {least}, not {getattr(self, what)}.")

    def check(self, df: DataFrame) -> None:
        """Refuse columns that a tree cannot take."""
        check_server(df)
        check_label(df, self.label)
        for name in self.features:
            kind = exact_field(df, name, "feature").dataType
            if not isinstance(kind, NumericType | BooleanType):
                raise SkewlessError(
                    f"Feature '{name}' of type {kind.simpleString()} does not suit a decision "
                    "tree, which takes numbers and booleans: number its values first, for example "
                    "by how frequent they are."
                )

    def fit(
        self,
        df: DataFrame,
        scheme: Scheme | str = "partial",
        workers: int | None = None,
        *,
        seed: int = 0,
    ) -> DecisionTreeModel:
        """Learn from a batch, which is read once per level, and once more: cache it.

        scheme, workers, seed: as for `skewless.spark.group`
        """
        check_batch(df)
        self.check(df)
        tree, features = Tree(), tuple(self.features)
        for level in range(self.depth + 1):
            growing = [n for n in tree.leaves() if tree.depth[n] == level < self.depth]
            rows = messages(df, self.label, features, tree, growing)
            held: Held = {}
            tree.counts = [[0.0] * len(tree.classes) for _ in tree.counts]
            add(held, tree, collected(grouped(rows, scheme, workers, seed), self.bins), self.bins)
            if not tree.classes:
                raise SkewlessError("There is nothing to learn from: no row has a label.")
            if not grow(
                tree, held, len(features), self.depth, self.criterion, self.bins, self.least_rows
            ):
                break
        return DecisionTreeModel(tree, features, label_type(df, self.label))

    def learner(
        self,
        folder: str,
        scheme: Scheme | str = "partial",
        workers: int | None = None,
        *,
        grace: int = 200,
    ) -> TreeLearner:
        """A learner for streams: pass it to `writeStream.foreachBatch`.

        folder: where the tree and its histograms are kept after each micro-batch, so that one which
            runs again counts once; of the driver's file system
        grace: rows that a leaf must have seen before it may be split
        """
        if whole("grace", grace) < 2:
            raise SkewlessError(f"grace must be at least 2, not {grace}.")
        return TreeLearner(self, folder, scheme, workers, grace)
