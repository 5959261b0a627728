"""The most frequent hashtags of all, per week, and those that grew most in the last day."""

import sys
from datetime import timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless.apps import top_k, trending


def tags(spark, path=None, lines=20_000):
    """Time and tag, from a file or made up: at the end one tag comes up that was not there."""
    if path is not None:
        rows = spark.read.csv(path, sep="\t", schema="at long, tag string", quote="").limit(lines)
    else:
        tag = "concat('t', cast(pow(rand(1), -0.9) as int) % 500)"
        rows = spark.range(lines).selectExpr(
            f"1700000000 + cast(id * {20 * 86400} / {lines} as long) as at",
            f"case when id > 0.98 * {lines} and id % 4 = 0 then 'news' else {tag} end as tag",
        )
    return rows.select(F.timestamp_seconds("at").alias("time"), "tag")


def main(path=None, lines=20_000):
    """Print them; the three rankings."""
    spark = SparkSession.builder.getOrCreate()
    rows = tags(spark, path, lines)
    ever = top_k(rows, "tag", 5, workers=4).orderBy("rank")
    weekly = top_k(rows, "tag", 3, by=F.window("time", "7 days"), workers=4)
    growing = trending(rows, "tag", "time", timedelta(days=1), 5, counters=1000, workers=4)
    found = [ever.collect(), weekly.orderBy("window", "rank").collect(), growing.collect()]
    for title, ranking in zip(("of all", "per week", "growing"), found, strict=True):
        print(f"\n{title}")
        for row in ranking:
            when = f"{row['window']['start']:%d %B %Y}  " if "window" in row else ""
            number = row["now"] if "now" in row else row["count"]
            print(f"{when}{row['rank']}. {row['tag']} ({number})")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:2])
