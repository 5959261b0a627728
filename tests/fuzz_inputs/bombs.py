"""Small files that unpack to far more than the memory: read under a limit of it, as a program.

`python -m tests.fuzz_inputs.bombs FOLDER` prints a line per file: its kind, and what came of it.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skewless.diagnose.event_log.log import diagnose_log
from skewless.errors import SkewlessError
from skewless.streams import stream_of
from tests.fuzz_inputs.mutate import bomb

LIMIT_BYTES = 3 << 30  # of addresses; libraries take half of that before anything is read
WIDE_ROWS = 24  # of 64 MiB each
TEN_GB, MANY_LINES = 10 * 1000**3, 60 * 1000**2


def streams(text: str) -> Callable[[Path], object]:
    return lambda path: sum(c.keys.size for c in stream_of(text.format(path=path)).chunks())


READERS: dict[str, Callable[[Path], object]] = {
    "words": streams("words:path={path}"),
    "tsv": streams("tsv:path={path},column=1"),
    "csv": streams("csv:path={path},column=1"),
    "log": diagnose_log,
}


def main(folder: Path) -> None:
    wide = folder / "wide.parquet"
    piece = pa.table({"a": pa.array(["x" * (1 << 26)])})
    with pq.ParquetWriter(wide, piece.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(WIDE_ROWS):
            writer.write_table(piece)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    path = folder / "bomb.gz"
    for kind, read in READERS.items():
        path.write_bytes(bomb(b'{"Event":"' if kind == "log" else b"a", b"a", TEN_GB))
        _say(f"one line, {kind}", read, path)
    path.write_bytes(bomb(b"a\n", b"key\n", MANY_LINES))
    for kind in ("words", "tsv", "csv"):
        _say(f"lines, {kind}", READERS[kind], path)
    _say("wide rows, parquet", streams("parquet:path={path},column=a"), wide)


def _say(kind: str, read: Callable[[Path], object], path: Path) -> None:
    said = _said(read, path).replace(str(path), path.name)
    print(kind, f"{path.stat().st_size:,} bytes", said, sep=": ", flush=True)


def _said(read: Callable[[Path], object], path: Path) -> str:
    try:
        return f"read: {read(path)}".splitlines()[0]
    except SkewlessError as error:
        return f"refused: {error}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
