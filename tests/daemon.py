"""Spark's daemon of Python workers, with no archive on its path.

Before Spark 4.2, each task has its worker forget what it knows of its path. On Python 3.11, that
reads the directory of each archive on it again: those of PySpark, and the 5,000 entries of Spark's
core jar. It takes 0.2 s of processor time, more than most tasks of the tests, and nothing is found
there: PySpark is also installed beside the archives.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    ARCHIVES = (".zip", ".jar")
    sys.path[:] = [path for path in sys.path if not path.endswith(ARCHIVES)]
    for path in list(sys.path_importer_cache):
        if any(archive in path for archive in ARCHIVES):
            del sys.path_importer_cache[path]

    from pyspark.daemon import manager

    manager()
