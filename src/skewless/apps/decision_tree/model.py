"""A tree that was learned: as a Column that predicts, as text, and as nodes to draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from skewless.apps.decision_tree.histogram import F64
from skewless.apps.decision_tree.tree import LEAF, Tree
from skewless.spark.input.checks import column_named
from skewless.spark.input.version import arrow_function, spark_type_of


@dataclass(frozen=True)
class DecisionTreeModel:
    """A tree with the names of its features; made by `DecisionTree.fit`."""

    tree: Tree
    features: tuple[str, ...]
    label_type: pa.DataType

    def __repr__(self) -> str:
        return (
            f"DecisionTreeModel({len(self.tree.leaves()):,} leaves for "
            f"{len(self.tree.classes):,} classes by {', '.join(self.features)})"
        )

    def prediction(self) -> Column:
        """The class of a row: a Column for `withColumn`, of a batch or a stream."""
        tree = self.tree
        classes = pa.array(tree.classes, self.label_type)
        of_node = np.array([tree.majority(node) for node in range(len(tree.feature))])

        def classes_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            for rows in batches:
                yield classes.take(pa.array(of_node[tree.leaves_of(as_rows(rows))]))

        kind = spark_type_of(self.label_type).simpleString()
        return arrow_function(classes_of, kind)(as_column(self.features)).alias("prediction")

    def text(self) -> str:
        """The tree in words, one line per node."""
        return self.tree.text(self.features)

    def nodes(self) -> list[dict[str, Any]]:
        """What `skewless.report.plots.save_tree` draws: number, parent, edge and text of each."""
        tree, found = self.tree, []
        for node, parent, on_left in tree.walk():
            inner = tree.feature[node] != LEAF
            name = self.features[tree.feature[node]]
            text = f"{name} ≤ {tree.threshold[node]:.4g}" if inner else tree.describe(node)
            edge = "" if parent == LEAF else "yes" if on_left else "no"
            found.append({"node": node, "parent": parent, "edge": edge, "text": text})
        return found


def as_column(features: tuple[str, ...]) -> Column:
    """The features of a row as one array of doubles."""
    return F.array(*(column_named(name).cast("double") for name in features))


def as_rows(lists: pa.Array) -> F64:
    """[rows, features], NaN where there is no finite number."""
    flat = pc.cast(lists.flatten(), pa.float64()).to_numpy(zero_copy_only=False)
    rows = flat.reshape(len(lists), -1) if len(lists) else np.empty((0, 1))
    return np.where(np.isfinite(rows), rows, np.nan)


def leaf_column(tree: Tree, features: tuple[str, ...]) -> Column:
    """The leaf that a row is in."""

    def leaves_of(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for rows in batches:
            yield pa.array(tree.leaves_of(as_rows(rows)).astype(np.int32))

    return arrow_function(leaves_of, "int")(as_column(features))
