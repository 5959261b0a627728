"""Spark's daemon of Python workers with all imports done: each worker that it forks starts at once.

A campaign starts hundreds of workers, and on a small machine their imports would take most of it.
"""

from __future__ import annotations

import numba  # noqa: F401
import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark.daemon import manager

import tests.chaos.streams  # noqa: F401

if __name__ == "__main__":
    manager()
