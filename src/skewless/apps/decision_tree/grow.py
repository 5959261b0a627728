"""From rows to histograms on Spark, and from histograms to a larger tree on the driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.apps.decision_tree.fold import HistogramFold, from_dict
from skewless.apps.decision_tree.histogram import Histogram, empty, merged
from skewless.apps.decision_tree.model import as_column, leaf_column
from skewless.apps.decision_tree.splits import best_split
from skewless.apps.decision_tree.tree import Tree
from skewless.schemes import Scheme
from skewless.spark.fold.group import Grouping, group
from skewless.spark.input.checks import column_named
from skewless.spark.input.version import as_arrow

ROWS = -1  # stands in a feature's place where rows of a class are counted
Key = tuple[int, int]  # feature, class
Held = dict[int, dict[Key, Histogram]]  # by leaf


def messages(
    df: DataFrame, label: str, features: tuple[str, ...], tree: Tree, growing: Iterable[int]
) -> DataFrame:
    """One row per leaf, feature, label and value; of leaves that do not grow, the rows only."""
    named = column_named(label)
    rows = df.where(named.isNotNull()).select(
        leaf_column(tree, features).alias("leaf"),
        named.alias("label"),
        as_column(features).alias("values"),
    )
    grows = F.col("leaf").isin(list(growing))
    nothing = F.array().cast("array<double>")
    values = F.concat(F.array(F.lit(0.0)), F.when(grows, F.col("values")).otherwise(nothing))
    one_each = rows.select("leaf", "label", F.posexplode(values).alias("place", "x"))
    finite = F.abs("x") < float("inf")  # null and NaN are not
    feature = (F.col("place") - 1).alias("feature")
    return one_each.where(finite).select("leaf", feature, "label", "x")


def grouped(rows: DataFrame, scheme: Scheme | str, workers: int | None, seed: int) -> Grouping:
    """Messages by leaf, feature and label."""
    return group(rows, ["leaf", "feature", "label"], scheme, workers, seed=seed)


def collected(grouping: Grouping, bins: int) -> pa.Table:
    """leaf, feature, label, histogram."""
    return as_arrow(grouping.fold(HistogramFold("x", bins)))


def add(held: Held, tree: Tree, table: pa.Table, bins: int) -> None:
    """Add new histograms to those that are held, and to the tree's counts."""
    for row in sorted(table.to_pylist(), key=_order):
        number = tree.class_number(row["label"])
        new = from_dict(row["histogram"])
        leaf = held.setdefault(row["leaf"], {})
        key = row["feature"], number
        leaf[key] = merged(leaf.get(key, empty()), new, bins)
        if row["feature"] == ROWS:
            tree.counts[row["leaf"]][number] += new.total


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """The same order in every run, so that classes get the same numbers."""
    return row["leaf"], row["feature"], row["label"]


def grow(
    tree: Tree,
    held: Held,
    features: int,
    depth: int,
    criterion: str,
    bins: int,
    least_rows: int,
) -> list[int]:
    """Split each leaf that has enough rows and gains by it; drops and returns those that were."""
    done = []
    for leaf in sorted(held):
        of_leaf = {key: one for key, one in held[leaf].items() if key[0] != ROWS}
        rows = sum(one.total for key, one in held[leaf].items() if key[0] == ROWS)
        if tree.depth[leaf] >= depth or rows < least_rows or not of_leaf:
            continue
        found = best_split(of_leaf, features, len(tree.classes), rows, criterion, bins)
        if found is not None:
            tree.split(leaf, found)
            del held[leaf]
            done.append(leaf)
    return done
