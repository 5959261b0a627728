"""Words that are at least 1 % of all words, each with what its count may be off by."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.apps import heavy_hitters


def words(spark, path=None, lines=20_000):
    """The words of a file's second column, or made-up ones."""
    if path is None:
        drawn = spark.range(lines).selectExpr("cast(pow(rand(1), -0.9) as int) % 5000 as word")
        return drawn.select(F.concat(F.lit("w"), "word").alias("word"))
    text = spark.read.csv(path, sep="\t", schema="time long, text string", quote="").limit(lines)
    return text.select(F.explode(F.split("text", " ")).alias("word")).where("word != ''")


def main(path=None, lines=20_000):
    """Print them; the rows."""
    spark = SparkSession.builder.getOrCreate()
    found = heavy_hitters(words(spark, path, lines), "word", share=0.01, workers=4).collect()
    for row in found:
        certain = "" if row["sure"] else " (perhaps)"
        print(f"{row['word']}: {row['count'] - row['error']} to {row['count']} times{certain}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
