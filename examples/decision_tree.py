"""A decision tree: what kind of connection is it? Printed, and drawn into tree.png."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from connections import connections, split
from skewless.apps import DecisionTree
from skewless.report.plots import save_tree


def numbered(rows, columns):
    """Texts as numbers, 0 for the most frequent: a tree splits numbers."""
    for column in columns:
        counts = rows.groupBy(column).count().orderBy(F.desc("count"), column).collect()
        ranks = F.create_map(
            *(F.lit(x) for rank, row in enumerate(counts) for x in (row[column], rank))
        )
        rows = rows.withColumn(column, ranks[F.col(column)])
    return rows


def main(path=None, lines=20_000, picture="tree.png"):
    """Print the tree and its accuracy; the accuracy."""
    spark = SparkSession.builder.getOrCreate()
    names = ["service", "protocol", "flag"]
    known, new = split(numbered(connections(spark, path, lines), names))
    tree = DecisionTree("label", [*names, "bytes"], depth=3).fit(known, workers=4)
    judged = new.select("label", tree.prediction())
    accuracy = judged.where("label = prediction").count() / judged.count()
    print(f"{tree.text()}\n{accuracy:.2%} right")
    save_tree(tree.nodes(), "Connections", Path(picture))
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
