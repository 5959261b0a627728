"""Files that people hand in: text, TSV, CSV, Parquet, gzip of these, and Spark's event logs."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from skewless.diagnose.compare import compare_logs
from skewless.diagnose.event_log.log import diagnose_log
from skewless.diagnose.page.log import log_body
from skewless.streams import Stream
from skewless.streams.csv import CommaSeparated
from skewless.streams.parquet import Parquet
from skewless.streams.tsv import TabSeparated
from skewless.streams.words import Words
from tests.fuzz_inputs.mutate import mutated_bytes, mutated_json
from tests.fuzz_inputs.trial import Trials

LOGS = Path(__file__).parents[1] / "event_logs"
LINES = 400  # of a real log: enough for jobs, stages, tasks and plans


def text() -> bytes:
    return "to be, or not to be: thät is the question\n".encode() * 40


def tsv() -> bytes:
    return b"".join(f"{i}\tkey{i % 7}\tx y z\r\n".encode() for i in range(60))


def csv() -> bytes:
    return b'a,b,"c d"\n' + b"".join(
        f'{i},"key, {i % 7}","x ""y"" z"\n'.encode() for i in range(60)
    )


def parquet(drawn: random.Random) -> bytes:
    out, codec = io.BytesIO(), drawn.choice(["none", "snappy", "zstd", "gzip"])
    columns: dict[str, Any] = {
        "a": list(range(60)),
        "b": [f"key{i % 7}" for i in range(60)],
        "c": [[i] for i in range(60)],
        "d": [None if i % 9 else {"x": i} for i in range(60)],
    }
    pq.write_table(pa.table(columns), out, compression=codec, row_group_size=25)
    return out.getvalue()


def readers(drawn: random.Random, path: str) -> tuple[bytes, Stream]:
    """A valid file, and a stream that reads it."""
    column = drawn.choice(["a", "b", "c d", "2", "9"])
    kinds: list[tuple[bytes, Stream]] = [
        (text(), Words(path)),
        (tsv(), Words(path, 2)),
        (tsv(), TabSeparated(path, drawn.randint(1, 4))),
        (csv(), CommaSeparated(path, column)),
        (csv(), CommaSeparated(path, column, drawn.choice([",", "\t", "'", ";"]))),
        (parquet(drawn), Parquet(path, drawn.choice(["a", "b", "c", "d", "nope"]))),
    ]
    return drawn.choice(kinds)


def fuzz_readers(drawn: random.Random, count: int, folder: Path) -> Trials:
    """Every reader, on plain files and on gzip that was damaged before or after it was packed."""
    trials, path = Trials("readers"), folder / "input"
    for _ in range(count):
        data, stream = readers(drawn, str(path))
        packed = drawn.random() < 0.3 and not isinstance(stream, Parquet)
        if drawn.random() < 0.5 or not packed:
            data = mutated_bytes(data, drawn)
        if packed:
            data = gzip.compress(data, 1)
            if drawn.random() < 0.6:
                data = mutated_bytes(data, drawn)
        path.write_bytes(data)
        source = "a" if drawn.random() < 0.1 else None
        trials.run(
            lambda s=stream, c=source: sum(chunk.keys.size for chunk in s.chunks(0, c)),
            (stream, source, data[:80]),
        )
    return trials


def fuzz_logs(drawn: random.Random, count: int, folder: Path) -> Trials:
    """Real event logs: bytes changed, lines dropped or moved, values inside a line replaced."""
    trials, path = Trials("event logs"), folder / "log"
    logs = [_short_log(file) for file in sorted(LOGS.glob("*.gz"))]
    for _ in range(count):
        lines = list(drawn.choice(logs))
        for _ in range(drawn.randint(1, 3)):
            at = drawn.randrange(len(lines))
            if drawn.random() < 0.6:
                event = mutated_json(json.loads(lines[at] or b"{}"), drawn)
                lines[at] = json.dumps(event, separators=(",", ":")).encode()
            else:
                lines[at] = drawn.choice(
                    [b"", b"{", b"[]", b"null", lines[drawn.randrange(len(lines))]]
                )
        data = b"\n".join(lines)
        if drawn.random() < 0.3:
            data = mutated_bytes(data, drawn)
        if drawn.random() < 0.3:
            codec = drawn.choice(["gzip", "zstd", "lz4"])
            data = pa.compress(data, codec=codec, asbytes=True)
            if drawn.random() < 0.7:
                data = mutated_bytes(data, drawn)
        path.write_bytes(data)
        trials.run(lambda: _all_of(path), data[:80])
    return trials


def _short_log(file: Path) -> list[bytes]:
    lines = gzip.decompress(file.read_bytes()).splitlines()
    step = max(1, len(lines) // LINES)
    return lines[:40] + lines[40::step]


def _all_of(path: Path) -> None:
    """A diagnosis in every form in which it is shown."""
    log = diagnose_log(path)
    log.to_json(), repr(log), log_body(log)
    compare_logs(log, log)
