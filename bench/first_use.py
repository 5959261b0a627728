"""What the first use costs: nothing compiled, nothing cached, against the second.

python bench/first_use.py             every scheme through `skewless simulate`, 100,000 messages
python bench/first_use.py --spark     the first and the second batch on executors with empty caches
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyspark

import skewless
from skewless.schemes import SCHEMES

STREAM = "zipf:z=1.0,keys=10000,messages=100000"
ON_CLUSTER = """
import sys, time
from pyspark.sql import SparkSession, functions as F
from skewless.spark import repartition
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
spark = builder.config("spark.executor.memory", "1g").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
# Python workers run and Arrow is loaded: what remains is ours.
rows = spark.range(0, 200_000, 1, 4).select((F.col("id") % 1000).alias("key"))
rows.mapInArrow(lambda batches: batches, "key long").write.format("noop").mode("overwrite").save()
for name in ("first", "second", "third"):
    start = time.perf_counter()
    routed = repartition(rows, "key", sys.argv[1], 4)
    planned = time.perf_counter()
    routed.write.format("noop").mode("overwrite").save()
    batch = time.perf_counter() - planned
    print(f"{sys.argv[1]:12} {name:6} driver {planned - start:5.2f} s, batch {batch:5.2f} s")
spark.stop()
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--spark", action="store_true")
    arguments.add_argument("--schemes", default="", help="separated by commas; else all")
    given = arguments.parse_args()
    chosen = [name for name in given.schemes.split(",") if name]
    if given.spark:
        for name in chosen or ["partial", "graded", "d-choices"]:
            with installed() as environment:
                code = [sys.executable, "-c", ON_CLUSTER, name]
                subprocess.run(code, env=environment, check=True, stderr=subprocess.DEVNULL)
        return
    print(f"{'scheme':20} first s  second s")
    for name in chosen or list(SCHEMES):
        spec = f"{name}:learn=20000" if SCHEMES[name].learns == "prefix" else name
        with installed() as environment:
            cold_s, warm_s = (simulate_s(spec, environment) for _ in range(2))
        print(f"{name:20} {cold_s:7.2f} {warm_s:9.2f}", flush=True)


class installed:
    """The package in a folder of its own, where nothing was compiled; what runs it from there."""

    def __enter__(self) -> dict[str, str]:
        self._folder = tempfile.mkdtemp(prefix="skewless-first-use-")
        package = Path(skewless.__file__).parent
        shutil.copytree(package, Path(self._folder) / "skewless")
        kept = Path(self._folder) / "skewless" / "__pycache__" / "compiled"
        shutil.rmtree(kept, ignore_errors=True)
        inherited = {
            k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        }
        own = {"PYTHONPATH": self._folder, "HOME": self._folder, "PYSPARK_PYTHON": sys.executable}
        return inherited | own | {"SPARK_HOME": str(Path(pyspark.__file__).parent)}

    def __exit__(self, *failure: object) -> None:
        shutil.rmtree(self._folder)


def simulate_s(scheme: str, environment: dict[str, str]) -> float:
    command = [sys.executable, "-m", "skewless", "simulate", "--stream", STREAM, "--scheme", scheme]
    start_s = time.perf_counter()
    subprocess.run(
        [*command, "--workers", "10", "--json"],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start_s


if __name__ == "__main__":
    main()
