"""Whether Spark's Python workers have this package, asked once for each application.

Without it a job would fail in a worker, with a worker's traceback. The question itself must not
need the package there, so its function travels by value.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skewless.errors import SkewlessError
from skewless.spark.input.version import application_of

_ASKED: set[str] = set()  # applications; `foreachBatch` makes another session for each batch
_ASKS = threading.Lock()  # what travels by value is a setting of the whole process


def check_workers_python(spark: SparkSession, version: str) -> None:
    """Refuse a Spark whose workers lack this package or have another version of it."""
    with _ASKS:
        asked = application_of(spark)
        if asked not in _ASKED:
            _ask(spark, version)
            _ASKED.add(asked)


def _ask(spark: SparkSession, version: str) -> None:
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        found = spark.range(1).mapInArrow(_answer, "python string, version string, error string")
        row = found.collect()[0]
    except PySparkException as error:
        raise SkewlessError(
            f"Spark's Python workers cannot run the simplest Arrow function "
            f"({_reason(str(error))}): before Spark starts, set PYSPARK_PYTHON to a Python of the "
            "driver's version that has pyarrow, pandas and skewless."
        ) from error
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    if row["version"] != version:
        lacks = (
            f"no skewless ({row['error']})"
            if row["version"] is None
            else f"skewless {row['version']}, where the driver has {version}"
        )
        raise SkewlessError(
            f"The Python of Spark's workers, {row['python']}, has {lacks}: start Spark with "
            "PYSPARK_PYTHON set to a Python that has the driver's version, or hand the package to "
            "the workers as docs/deployment.md describes."
        )


def _reason(text: str) -> str:
    """The line of a worker's traceback that says what was wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception"))]
    return (telling or lines or ["it did not say why"])[-1].rstrip(".")


def _answer(batches: Iterator[Any]) -> Iterator[Any]:
    """What a worker's Python has; it may know nothing of this module."""
    for _ in batches:
        version = error = None
        try:
            # All that a task will import, with what that itself needs.
            import skewless.schemes

            version = skewless.__version__
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
        columns = [[sys.executable], [version], [error]]
        arrays = [pa.array(column, pa.string()) for column in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=["python", "version", "error"])
