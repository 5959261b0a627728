"""Run as a program: the driver of a stream that another process kills and starts again.

`python -m tests.faults.driver_job FOLDER` goes on from its checkpoint; at the end it writes
`result.json` with all that the sink holds. `setting.json`, if there, has scheme, workers and seed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import group
from tests import sparks

SETTING = ("partial", 4, 0)
DELAY_MS = 1.0


def main(folder: Path) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **sparks.SETTINGS,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    reader = spark.readStream.schema("t timestamp, w string").option("maxFilesPerTrigger", 1)
    rows = reader.parquet(str(folder / "in")).withWatermark("t", "1 minute")
    checkpoint = str(folder / "checkpoint")
    key = [F.window("t", "10 minutes"), "w"]
    setting = folder / "setting.json"
    scheme, workers, seed = json.loads(setting.read_text()) if setting.exists() else SETTING
    grouping = group(rows, key, scheme, workers, seed=seed, checkpoint=checkpoint)
    counts = grouping.fold(folds.sleeping(folds.count(), DELAY_MS))
    writer = counts.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    sunk = spark.read.parquet(str(folder / "out"))
    found = sunk.select(F.unix_timestamp("window.start").alias("start"), "w", "count").collect()
    (folder / "result.json").write_text(json.dumps([list(row) for row in found]))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
