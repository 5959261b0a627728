"""Files read in blocks: plain or gzip, with one clear sentence for whatever is wrong with them."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn, cast

from skewless.errors import SkewlessError

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 64 << 20  # bytes; a small gzip file may unpack to one line that fills the memory
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn what reading that file raises into one sentence."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SkewlessError(
            f"The file '{path}' is not a whole gzip file: it is cut short or damaged; get it again."
        ) from error
    except FileNotFoundError as error:
        raise SkewlessError(f"There is no file '{path}': check the path.") from error
    except UnicodeDecodeError as error:
        refuse_encoding(path, error)
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0].rstrip(".")
        raise SkewlessError(f"The file '{path}' cannot be read: {reason}.") from error


def refuse_encoding(path: str, cause: Exception) -> NoReturn:
    """Refuse text that is not UTF-8."""
    raise SkewlessError(
        f"The file '{path}' is not UTF-8 text: convert it, for example with iconv -t UTF-8."
    ) from cause


def refuse_line(path: str) -> NoReturn:
    """Refuse a line or word that would fill the memory."""
    raise SkewlessError(
        f"The file '{path}' has a line or word of many megabytes, so it is not text of this kind: "
        "check what it holds."
    )


def open_bytes(path: str) -> IO[bytes]:
    """The file's bytes, unzipped if its name or its first bytes say gzip."""
    place = Path(os.path.expanduser(path))
    with place.open("rb") as file:
        zipped = file.read(2) == _GZIP_MAGIC or place.suffix == ".gz"
    return cast("IO[bytes]", gzip.open(place, "rb")) if zipped else place.open("rb")


def text_blocks(path: str, ends: bytes = b"\n") -> Iterator[bytes]:
    """The file as blocks of UTF-8 that are cut only after one of the bytes `ends`."""
    with explained(path), open_bytes(path) as file:
        pending: list[bytes] = []
        first = True
        while block := file.read(BLOCK_BYTES):
            if first:
                block, first = block.removeprefix(_BYTE_ORDER_MARK), False
            cut = 1 + max(block.rfind(end) for end in (bytes([e]) for e in ends))
            if not cut:
                pending.append(block)
                if len(pending) * BLOCK_BYTES > LONGEST_LINE:
                    refuse_line(path)
                continue
            whole = b"".join([*pending, block[:cut]])
            pending = [block[cut:]]
            yield checked(path, whole)
        if rest := b"".join(pending):
            yield checked(path, rest)


def checked(path: str, block: bytes) -> bytes:
    """The block, if it is UTF-8."""
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError as error:
            refuse_encoding(path, error)
    return block
