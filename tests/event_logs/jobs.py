"""Real jobs whose skew is known by construction; Spark writes their event log.

    python jobs.py FOLDER ROW_S [name=value …]

with the seconds that a row sleeps, and settings of Spark such as spark.eventLog.compress=false.
Rows sleep, so that the time of every task is known: a hot key has HOT of the rows of its job.
Prints the truth as JSON: for each job the seconds that its slow stage takes, and would take with
even work.
It runs on every Spark from 3.3 on, without skewless.
"""

import json
import sys
import time

CORES = 4
ROW_S = 0.002  # or as the command line says; set before any task is made
ROWS = 1200
HOT = 0.7


def session(folder, settings):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(f"local[{CORES}]").appName("jobs")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.sql.shuffle.partitions": str(2 * CORES),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    }
    for name, value in {**fixed, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def sleep_for(rows):
    time.sleep(ROW_S * rows)


def sleeping(frames):
    for frame in frames:
        sleep_for(len(frame))
        yield frame


def sleeping_group(frame):
    sleep_for(len(frame))
    return frame


def costly_group(frame):
    sleep_for(10 * len(frame) if (frame.iloc[:, 0] == 0).any() else len(frame) / 4)
    return frame


def run(frame):
    frame.write.format("noop").mode("overwrite").save()


def skewed(spark, name, hot=HOT):
    from pyspark.sql import functions as F

    rows = spark.range(0, ROWS, 1, CORES)
    key = F.when(F.col("id") < int(hot * ROWS), F.lit(0)).otherwise(F.col("id") % 40 + 1)
    return rows.select(key.cast("long").alias(name), "id")


def loads(frame, name, weight, partitions):
    """Seconds of work in each partition that Spark's hash gives these keys."""
    from pyspark.sql import functions as F

    place = F.expr(f"pmod(hash({name}), {partitions})")
    rows = frame.groupBy(place.alias("p"), name).count().collect()
    seconds = [0.0] * partitions
    for row in rows:
        seconds[row["p"]] += weight(row[name], row["count"])
    return seconds


def truth(seconds):
    """What the stage takes at best as it is, and with even work; tasks start in order."""
    free = [0.0] * CORES
    for task in seconds:
        free[free.index(min(free))] += task
    return {"took_s": max(free), "even_s": sum(seconds) / CORES}


def main(folder, settings):
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    spark = session(folder, settings)
    partitions = 2 * CORES
    truths = {}
    even = lambda key, count: ROW_S * count  # noqa: E731

    warm = spark.range(0, 400, 1, CORES).mapInPandas(lambda frames: frames, "id long")
    run(warm)

    orders = skewed(spark, "customer_id")
    customers = spark.range(0, 41).select(
        F.col("id").alias("customer_id"), (F.col("id") * 2).alias("x")
    )
    joined = orders.join(customers, "customer_id").mapInPandas(
        sleeping, "customer_id long, id long, x long"
    )
    run(joined)
    same = truth(loads(orders, "customer_id", even, partitions))  # for all with these keys
    truths["join"] = same | {"column": "customer_id"}

    sensors = skewed(spark, "sensor")
    run(sensors.groupBy("sensor").applyInPandas(sleeping_group, "sensor long, id long"))
    truths["python"] = same | {"column": "sensor"}

    users = skewed(spark, "user_id")
    ranked = users.withColumn("n", F.row_number().over(Window.partitionBy("user_id").orderBy("id")))
    run(ranked.mapInPandas(sleeping, "user_id long, id long, n int"))
    truths["window"] = same | {"column": "user_id"}

    parts = spark.range(0, ROWS, 1, CORES).select((F.col("id") % 40).alias("part"), "id")
    run(parts.groupBy("part").applyInPandas(costly_group, "part long, id long"))
    weigh = lambda key, count: ROW_S * (10 * count if key == 0 else count / 4)  # noqa: E731
    truths["costly"] = truth(loads(parts, "part", weigh, partitions)) | {"column": "part"}

    flat = spark.range(0, ROWS, 1, 8 * CORES).mapInPandas(sleeping, "id long")
    run(flat)
    few = spark.range(0, ROWS // 2, 1, 2).mapInPandas(sleeping, "id long")
    run(few)

    counted = skewed(spark, "word").groupBy("word").count()
    run(counted)

    def fails(frames):
        for _ in frames:
            raise ValueError("made to fail")
        yield

    try:
        run(spark.range(0, 8, 1, 2).mapInPandas(fails, "id long"))
        raise AssertionError("the job should have failed")
    except AssertionError:
        raise
    except Exception:
        pass

    skewed(spark, "device").write.mode("overwrite").parquet(f"{folder}.in")
    stream = spark.readStream.schema("device long, id long").parquet(f"{folder}.in")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    counts = stream.groupBy("device").count()
    query = (
        counts.writeStream.outputMode("complete")
        .format("noop")
        .option("checkpointLocation", f"{folder}.checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    print(json.dumps(truths))


if __name__ == "__main__":
    ROW_S = float(sys.argv[2])
    main(sys.argv[1], dict(setting.split("=", 1) for setting in sys.argv[3:]))
