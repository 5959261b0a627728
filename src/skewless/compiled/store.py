"""Where machine code is kept: with a job, in the installation, in the user's cache, or nowhere.

The first of these folders that can be written to is used; all are looked in:

- `$NUMBA_CACHE_DIR/skewless`, if that variable is set
- `__pycache__` of the installed package
- the user's cache: `$XDG_CACHE_HOME/skewless` or `~/.cache/skewless`
- a folder of the user's own among the temporary files

Nothing fails where there is none, or where the disk is full: then each process compiles for itself.
Machine code is trusted like the package's own source, so a folder that another user could write
to is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

LONGEST_WAIT_S = 60.0  # for another process of this machine to compile; twice the slowest seen
_POLL_S = 0.02
_DIGEST_BYTES = 16


class Store:
    """Bytes by name."""

    def __init__(self) -> None:
        self._handed: dict[str, bytes] = {}
        self._claims: dict[str, int] = {}
        self._warned = False

    def hand(self, entries: Mapping[str, bytes]) -> None:
        """Take entries over that came with a job."""
        self._handed.update(entries)

    @cached_property
    def folder(self) -> Path | None:
        """Where new entries are kept."""
        return next((folder for folder in _folders() if _can_write(folder)), None)

    def get(self, name: str) -> bytes | None:
        """The entry, from wherever it is found first."""
        if name in self._handed:
            return self._handed[name]
        for folder in _folders():
            with contextlib.suppress(OSError):
                data = (folder / name).read_bytes()
                if _digest(data[_DIGEST_BYTES:]) == data[:_DIGEST_BYTES] and _is_own(folder):
                    return data[_DIGEST_BYTES:]
        return None

    def await_or_claim(self, name: str) -> bytes | None:
        """What another process of this machine compiles just now, or None: compile it here."""
        if self.folder is None or fcntl is None or name in self._claims:
            return None
        stop_s = time.monotonic() + LONGEST_WAIT_S
        try:
            lock = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return None
        while time.monotonic() < stop_s:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL_S)
                continue
            except OSError:
                break  # a file system without locks: every process compiles for itself
            self._claims[name] = lock
            found = self.get(name)
            if found is not None:
                self.release(name)
            return found
        os.close(lock)
        return None

    def put(self, name: str, data: bytes) -> None:
        """Keep an entry, if that is possible."""
        if self.folder is not None:
            part = self.folder / f".{name}.{uuid.uuid4().hex}"
            try:
                part.write_bytes(_digest(data) + data)
                os.replace(part, self.folder / name)
            except OSError as error:
                self._warn(error)
                with contextlib.suppress(OSError):
                    part.unlink(missing_ok=True)
        self.release(name)

    def release(self, name: str) -> None:
        """Let others compile it who wait for this process."""
        lock = self._claims.pop(name, None)
        if lock is not None and self.folder is not None:
            with contextlib.suppress(OSError):
                (self.folder / f"{name}.lock").unlink(missing_ok=True)
            os.close(lock)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"Compiled code cannot be kept in '{self.folder}' ({error.strerror}), so the next "
                "start compiles again: make room there, or set NUMBA_CACHE_DIR to another folder.",
                stacklevel=2,
            )


def _folders() -> Iterator[Path]:
    """Where to look and to write, best first."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / "skewless"
    package = Path(__file__).parent.parent
    if package.is_dir():  # not inside a zip
        yield package / "__pycache__" / "compiled"
    with contextlib.suppress(RuntimeError):  # a user without a home
        cache = os.environ.get("XDG_CACHE_HOME")
        yield (Path(cache) if cache else Path.home() / ".cache") / "skewless"
    with contextlib.suppress(OSError):  # no folder for temporary files
        user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
        yield Path(tempfile.gettempdir()) / f"skewless-{user}"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_own(folder):
            return False
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"x" * 4096)  # a full disk says so only now
    except OSError:
        return False
    return True


def _is_own(folder: Path) -> bool:
    """Whether nobody but this user, root and the package's own installer could have written it."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    trusted = {os.getuid(), 0, Path(__file__).parent.stat().st_uid if _installed() else 0}
    return found.st_uid in trusted and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _installed() -> bool:
    return Path(__file__).exists()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


STORE = Store()
