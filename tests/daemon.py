"""Spark's daemon of Python workers, with no archive on its path.

An older Spark has its worker read the directory of each archive on the path again before each task:
those of PySpark, and of Spark's core jar with 5,000 entries. That is 0.2 s a task, most of what the
tests' small tasks take, and finds nothing: PySpark is installed beside the archive.
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
