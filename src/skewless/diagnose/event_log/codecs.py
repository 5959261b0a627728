"""The lines of a log file, whatever it is compressed with, in constant memory.

The first bytes tell the codec. Arrow reads zstd, gzip and standard lz4; Spark's own lz4 comes in
the blocks of lz4-java, which are read here. A log that ends in the middle gives what can be read.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import xxhash

from skewless.errors import SkewlessError

_ARROW = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\x04\x22\x4d\x18": "lz4"}
_LZ4_JAVA = b"LZ4Block"
_FOREIGN = {b"\x82SNAPPY\x00": "snappy", b"ZV": "lzf"}
_BLOCK_BYTES = 1 << 18
_HEADER = struct.Struct("<8sBiii")  # magic, token, compressed, original, checksum
_STORED, _COMPRESSED = 0x10, 0x20
_CHECKSUM_SEED, _CHECKSUM_BITS = 0x9747B28C, 0x0FFFFFFF  # as lz4-java has them
_LARGEST_BLOCK = 1 << 26  # lz4-java writes at most 32 MiB
_LONGEST_LINE = 1 << 28


class Cut(Exception):
    """The file ends, or is damaged, before its end."""


class NotALog(Exception):
    """The file does not begin with a JSON object."""


def lines_of(path: Path, progress: Callable[[int], None]) -> Iterator[bytes]:
    """The lines of a file without their ends; raises Cut after the last that can be read.

    A file that does not begin as a log does raises NotALog.

    progress: told the bytes of the file as they are read
    """
    try:
        with path.open("rb") as file:
            yield from _lines(_blocks(_Counted(file, progress), path))
    except OSError as error:
        raise SkewlessError(f"'{path}' cannot be read: {error.strerror or error}.") from error


class _Counted(io.RawIOBase):
    """A file that tells how far it was read."""

    def __init__(self, file: IO[bytes], progress: Callable[[int], None]) -> None:
        self._file, self._progress = file, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._progress(len(data))
        return len(data)


def _blocks(raw: io.RawIOBase, path: Path) -> Iterator[bytes]:
    file = io.BufferedReader(raw, _BLOCK_BYTES)
    start = file.peek(8)[:8]
    for magic, name in _FOREIGN.items():
        if start.startswith(magic):
            raise SkewlessError(
                f"'{path}' is compressed with {name}, which is not read here: write logs with "
                "spark.eventLog.compression.codec=zstd, or decompress it first."
            )
    codec = next((name for magic, name in _ARROW.items() if start.startswith(magic)), None)
    if codec is not None:
        return _through_arrow(file, codec)
    return _lz4_java(file) if start == _LZ4_JAVA else iter(lambda: file.read(_BLOCK_BYTES), b"")


def _through_arrow(file: IO[bytes], codec: str) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)
    while True:
        try:
            block = stream.read(_BLOCK_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise Cut from error
        if not block:
            return
        yield block


def _lz4_java(file: IO[bytes]) -> Iterator[bytes]:
    """Blocks as LZ4BlockOutputStream writes them; an empty one ends a stream, others may follow."""
    codec = pa.Codec("lz4_raw")
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise Cut
        magic, token, compressed, original, checksum = _HEADER.unpack(header)
        method = token & 0xF0
        sizes_hold = 0 <= compressed <= _LARGEST_BLOCK and 0 <= original <= _LARGEST_BLOCK
        if magic != _LZ4_JAVA or method not in (_STORED, _COMPRESSED) or not sizes_hold:
            raise Cut
        data = file.read(compressed)
        if len(data) < compressed:
            raise Cut
        if not original:
            continue
        try:
            block = data if method == _STORED else codec.decompress(data, original, asbytes=True)
        except (OSError, pa.ArrowException) as error:
            raise Cut from error
        if xxhash.xxh32_intdigest(block, seed=_CHECKSUM_SEED) & _CHECKSUM_BITS != checksum:
            raise Cut
        yield block


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    pending: list[bytes] = []
    held = 0
    first_block = True
    for block in blocks:
        # Asked at once, for a file that is something else may not have a second line.
        if first_block and not block.lstrip().startswith(b"{"):
            raise NotALog
        first_block = False
        first, *others = block.split(b"\n")
        pending.append(first)
        held += len(first)
        if held > _LONGEST_LINE:
            raise Cut
        if others:
            yield b"".join(pending)
            pending = [others.pop()]
            held = len(pending[0])
            yield from others
    if rest := b"".join(pending):
        yield rest
