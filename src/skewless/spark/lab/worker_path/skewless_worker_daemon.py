"""PySpark's daemon of Python workers, whose workers end without a word once Spark has hung up.

Spark closes the socket of a worker that was idle for a minute, and those of all idle workers when a
session ends, just before it ends their daemon and them. From Spark 4.1 on, each of them prints the
traceback of a broken pipe, or as much of it as there is time for. It says nothing of use: what
fails in a task goes to Spark through the socket, and comes back as an exception.

Not a part of the package: a daemon that imports `skewless.spark` would fork after pyarrow and
pandas have started their threads. Its folder is on the path of a session's workers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark import daemon

HUNG_UP = 1


def until_hung_up(worker: Callable[..., int]) -> Callable[..., int]:
    """The same, except that the end of the connection is an exit code, not an error."""

    def run(*given: Any) -> int:
        try:
            return worker(*given)
        except (ConnectionError, EOFError):
            return HUNG_UP

    return run


if __name__ == "__main__":
    daemon.worker = until_hung_up(daemon.worker)
    daemon.manager()
