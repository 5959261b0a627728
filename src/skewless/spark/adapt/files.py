"""Files in a checkpoint, which appear whole or not at all; the first to write one wins."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from skewless.errors import SkewlessError

_RENAME_S = 5.0


def checkpoint_path(checkpoint: str) -> str:
    """The path of a checkpoint that Python can open as files; any other is refused."""
    if not isinstance(checkpoint, str | os.PathLike) or not str(checkpoint).strip():
        raise SkewlessError(
            f"A checkpoint is the path of a folder, not {checkpoint!r}: give the one that the "
            "stream is started with."
        )
    path = str(checkpoint)
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if ":/" in path:
        raise SkewlessError(
            f"Plans are kept in a folder that the driver and all tasks open as files, and "
            f"'{path}' is not one: give a mounted folder that they share."
        )
    return os.path.abspath(path)


def make_folder(folder: Path) -> None:
    """Make a folder of a checkpoint, or say why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SkewlessError(
            f"The folder '{folder}' cannot be made ({error.strerror}): give a checkpoint that "
            "can be written to."
        ) from None


def write_once(path: Path, data: bytes) -> None:
    """Make the file with all its content at once, unless it is there already."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        part.write_bytes(data)
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        except OSError:
            _move_once(part, path)
    except OSError as error:
        raise not_written(path, error) from None
    finally:
        # A disk that is full or read-only may keep the part: no reader looks at its name.
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def not_written(path: Path, error: OSError) -> SkewlessError:
    """What to say of a file that cannot be written."""
    return SkewlessError(
        f"The file '{path}' cannot be written ({error.strerror}): give a checkpoint that can be "
        "written to."
    )


def _move_once(part: Path, path: Path) -> None:
    """Put the file there where the file system has no hard links, as mounted stores often do not.

    A rename shows a file whole but would replace one that is there, so only who has made the mark
    may rename. Whoever finds the mark awaits the file; if none comes, its maker died.
    """
    mark = path.with_name(f".{path.name}.mark")
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        stop_s = time.monotonic() + _RENAME_S
        while not path.exists() and time.monotonic() < stop_s:
            time.sleep(0.01)
    if not path.exists():
        os.replace(part, path)
    mark.unlink(missing_ok=True)
