"""A job for `spark-submit --py-files`: is it exact on executors that got the package with it?"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skewless
from skewless import folds
from skewless.spark import group, repartition

spark = SparkSession.builder.appName("submitted").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = spark.range(0, 20_000, 1, 4).select((F.sqrt("id").cast("long") % 100).alias("key"), "id")
plain = sorted(map(tuple, rows.groupBy("key").agg(F.count("*"), F.max("id")).collect()))
for scheme in ("partial", "graded"):
    counted = group(rows, "key", scheme, 4).fold(folds.count(), folds.max("id"))
    assert sorted(map(tuple, counted.collect())) == plain, scheme
assert repartition(rows, "key", "graded", 4).count() == 20_000
spark.stop()
place = str(skewless.__file__)
assert ".whl" in place or ".zip" in place, place
print("submitted: exact")
