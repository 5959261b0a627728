"""Compiling in a process beside this one, which compiles other things meanwhile.

Numba compiles one function at a time, whatever the number of threads. So where there is a second
core, a copy of this process compiles what will be needed last and takes longest. Whoever needs it
finds it in the store, or waits there until it is ready, as for any other process of this machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from skewless.compiled.store import STORE


@contextlib.contextmanager
def compiling_beside(warm_up: Callable[[], object]) -> Iterator[None]:
    """Call `warm_up` in a process beside this one, which ends with the block at the latest.

    Where that is of no use (one core, nowhere to keep machine code) or not safe (other threads,
    which a copy would not have), nothing is done: what is needed is compiled when it is needed.
    """
    if not _can_fork():
        yield
        return
    # Loaded here, it need not be loaded twice.
    import skewless.compiled.build  # noqa: F401

    child = os.fork()
    if child == 0:
        # Whatever it says or fails with, this process will meet as well, and say then.
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            warm_up()
        os._exit(0)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _can_fork() -> bool:
    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and threading.active_count() == 1
        and STORE.folder is not None
    )
