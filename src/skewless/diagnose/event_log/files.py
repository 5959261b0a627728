"""Which files make up an event log: one file, or the rolling folder of recent Sparks.

A rolling folder holds events_1_APP, events_2_APP …; a file that ends in .compact stands for itself
and all before it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from skewless.errors import SkewlessError

_ROLLED = re.compile(r"events_(\d+)_")
_FOLDER = "eventlog_v2_"
_NAMED = 5


@dataclass(frozen=True)
class LogFiles:
    """The files of one log in order, and whether its beginning is missing."""

    files: list[Path]
    beheaded: bool = False

    @property
    def size_bytes(self) -> int:
        """As they lie on disk."""
        return sum(file.stat().st_size for file in self.files)


def log_files(path: str | Path) -> LogFiles:
    """The log at a path: a file, a rolling folder, or a folder with just one of these in it."""
    place = Path(os.path.expanduser(path))
    try:
        if not place.is_dir():
            if not place.exists():
                raise SkewlessError(f"There is no event log '{path}': check the path.")
            return LogFiles([place])
        rolled = _rolled(place)
        if rolled is not None:
            return rolled
        inside = sorted(p for p in place.iterdir() if _may_be_a_log(p))
    except OSError as error:
        raise SkewlessError(f"'{path}' cannot be read: {error.strerror}.") from error
    if len(inside) == 1:
        return log_files(inside[0])
    if not inside:
        raise SkewlessError(
            f"The folder '{path}' holds no event log: give a log file, or a folder named "
            f"{_FOLDER}… with files named events_…."
        )
    names = ", ".join(p.name for p in inside[:_NAMED]) + (", …" if len(inside) > _NAMED else "")
    raise SkewlessError(f"The folder '{path}' holds {len(inside)} logs ({names}): give one.")


def _rolled(folder: Path) -> LogFiles | None:
    """The files of a rolling folder by their numbers; None if it is no such folder."""
    numbered = sorted(
        (int(found[1]), not file.name.endswith(".compact"), file)
        for file in folder.iterdir()
        if (found := _ROLLED.match(file.name)) and file.is_file()
    )
    if not numbered:
        return None
    compacted = [number for number, plain, _ in numbered if not plain]
    first = max(compacted, default=0)
    used = [
        (number, file)
        for number, plain, file in numbered
        if number > first or (number == first and not plain)
    ]
    whole = bool(compacted) or used[0][0] == 1
    gaps = any(b - a != 1 for (a, _), (b, _) in pairwise(used))
    return LogFiles([file for _, file in used], beheaded=gaps or not whole)


def _may_be_a_log(path: Path) -> bool:
    if path.name.startswith((".", "_")):
        return False
    return path.is_file() or path.name.startswith(_FOLDER)
