"""What the pages of the documentation take for granted: the names that their snippets use."""

from __future__ import annotations

import re

from pyspark.sql import functions as F

from tests.spark.processors import CountPerKey

ROWS = 600


class WordsPerWorker(CountPerKey):
    """The processor that docs/streams.md calls MyProcessor."""


def words(spark):
    """A table with a hot word."""
    number = F.col("id")
    return spark.range(ROWS).select(
        F.when(number % 2 == 0, "the").otherwise(F.concat(F.lit("w"), number % 50)).alias("word"),
        F.lit("en").alias("lang"),
        (number % 7).cast("double").alias("price"),
        # One word has no x at all: own folds must stand that.
        F.when(number % 50 != 1, (number % 11).cast("double")).alias("x"),
        number.alias("id"),
    )


def timed_words(spark, folder):
    """A stream of words with their times, from files in the folder."""
    timed = words(spark).select(F.timestamp_seconds("id").alias("time"), "word")
    timed.coalesce(1).write.parquet(f"{folder}/in")
    return spark.readStream.schema("time timestamp, word string").parquet(f"{folder}/in")


def table(spark, folder):
    """For pages about one table of words."""
    return {"df": words(spark)}


def streams(spark, folder):
    """For docs/streams.md and docs/unequal.md; the snippets read the folder themselves."""
    return {"words": timed_words(spark, folder), "MyProcessor": WordsPerWorker}


def live(spark, folder):
    """For docs/live.md."""
    return {"stream": timed_words(spark, folder)}


def pages(spark, folder):
    """For docs/costs.md: web pages, and a model."""
    rows = words(spark).select(
        F.col("word").alias("site"),
        F.col("id").cast("string").alias("url"),
        F.lit("…").alias("text"),
    )
    return {"pages": rows, "load_model": lambda: lambda texts: texts}


def orders(spark, folder):
    """For docs/diagnose.md."""
    customers = words(spark).select(
        F.col("word").alias("customer_id"), (F.col("id") % 3).alias("day"), "price"
    )
    return {
        "df": customers,
        "orders": customers,
        "customers": customers.select("customer_id").distinct(),
        "pages": customers.select(
            F.col("customer_id").alias("site"), F.col("price").alias("bytes")
        ),
        "before": customers.groupBy("day").count(),
        "after": customers.groupBy("day").count(),
    }


def clicks(spark, folder):
    """For docs/joins.md: tables, and streams of the same rows."""
    clicked = words(spark).select(F.col("word").alias("user"), F.col("id").alias("click"))
    viewed = words(spark).select(F.col("word").alias("user"), F.col("id").alias("view"))
    clicked.write.parquet(f"{folder}/clicks")
    viewed.limit(20).write.parquet(f"{folder}/views")
    return {
        "clicks": clicked,
        "users": clicked.select("user", F.lit("x").alias("name")).distinct(),
        "earlier_clicks": clicked,
        "earlier_views": viewed,
        "clicks_stream": spark.readStream.schema(clicked.schema).parquet(f"{folder}/clicks"),
        "views_stream": spark.readStream.schema(viewed.schema).parquet(f"{folder}/views"),
    }


def connections(spark, folder):
    """For docs/applications.md: words, tags with times, and connections with a label."""
    number = F.col("id")
    rows = words(spark).select(
        "word",
        F.col("word").alias("tag"),
        F.timestamp_seconds(number * 30).alias("time"),
        (number % 2).alias("label"),
        (number % 3).alias("service"),
        (number % 5).alias("protocol"),
        (number % 4).alias("flag"),
        (number % 11).cast("double").alias("bytes"),
    )
    rows.coalesce(1).write.parquet(f"{folder}/in")
    stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/in")
    return {"df": rows, "stream": stream}


PREPARED = {
    "applications.md": connections,
    "costs.md": pages,
    "diagnose.md": orders,
    "folds.md": table,
    "graded.md": table,
    "joins.md": clicks,
    "live.md": live,
    "spark.md": table,
    "streams.md": streams,
    "unequal.md": streams,
}
# With a broker of their own, in tests/kafka.
ELSEWHERE = {"kafka.md"}
# What is changed before a page runs: less data, and ports that are free.
SMALLER = {"400_000": "4_000", "20_000": "8_000", "page=4041": "page=0", "port=9108": "port=0"}
# Folders that snippets name: relative to where Spark runs, so they are moved to the test's own.
FOLDERS = re.compile(r'"((?:in|out|clicks|topics|state|counts|checkpoints)(?=["/]))')
