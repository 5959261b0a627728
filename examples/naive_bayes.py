"""Naive Bayes: what kind of connection is it, by service, protocol and flag?"""

import sys

from pyspark.sql import SparkSession

from connections import connections, split
from skewless.apps import NaiveBayes


def main(path=None, lines=20_000):
    """Print the accuracy and the classes; the accuracy."""
    spark = SparkSession.builder.getOrCreate()
    known, new = split(connections(spark, path, lines))
    model = NaiveBayes("label", ["service", "protocol", "flag"]).fit(known, workers=4)
    judged = new.select("label", model.prediction())
    accuracy = judged.where("label = prediction").count() / judged.count()
    shares = zip(model.classes.to_pylist(), model.class_counts.tolist(), strict=True)
    print(f"{accuracy:.2%} right;", ", ".join(f"{name} {n:.0f}" for name, n in shares))
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
