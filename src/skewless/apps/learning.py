"""What a stream has taught so far, kept in a folder: a micro-batch that runs again counts once.

Spark runs a micro-batch again if the driver died before the batch was committed. What was learned
is written after each batch under its number, whole or not at all, and read again before the next:
so nothing lives in the driver's memory alone, and on Spark Connect nothing need come back from the
server's Python.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark.input.checks import column_named

KEPT = 2  # a batch that runs again is the last or the one after it
TESTS_KEPT = 1000
_NOTE = b"skewless"


class Learned(NamedTuple):
    """What is known after a batch: a table, and notes that JSON can write."""

    batch: int
    table: pa.Table
    notes: dict[str, Any]


class LearningFolder:
    """A folder with one file per batch, of which the last few stay."""

    def __init__(self, folder: str, facts: dict[str, Any]) -> None:
        """`facts` say what is learned; a folder with others is refused."""
        if not isinstance(folder, str | os.PathLike) or not str(folder).strip():
            raise SkewlessError(f"A learner keeps what it knows in a folder, not in {folder!r}.")
        if Path(folder).exists() and not Path(folder).is_dir():
            raise SkewlessError(f"'{folder}' is a file: give a learner a folder.")
        self.folder, self.facts = folder, facts

    def newest(self) -> Learned | None:
        """What the last batch left, or None before the first."""
        batches = self._batches()
        if not batches:
            return None
        path = self._path(batches[-1])
        try:
            with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
                table = reader.read_all()
            table.validate(full=True)
            notes = json.loads(table.schema.metadata[_NOTE])
            facts = notes.pop("facts")
        except (OSError, pa.ArrowException, MemoryError, KeyError, TypeError, ValueError,
                AttributeError):  # fmt: skip
            # An older one lacks batches that Spark will not send again.
            raise SkewlessError(
                f"'{path}' is damaged: restore it, or start with a new folder and a new checkpoint."
            ) from None
        if facts != self.facts:
            raise SkewlessError(
                f"The folder '{self.folder}' was written by another model: use the same columns "
                "and parameters as before, or a new folder."
            )
        return Learned(batches[-1], table.replace_schema_metadata(None), notes)

    def knows(self, batch: int) -> bool:
        """Whether this batch was learned from: it runs again, for its driver died before it ended.

        Spark runs no batch again but the last: an earlier number is another stream's.
        """
        newest = max(self._batches(), default=-1)
        if newest > batch:
            raise SkewlessError(
                f"The folder '{self.folder}' has learned from batch {newest}, and this stream is "
                f"at batch {batch}: it has another checkpoint; give it a new folder."
            )
        return newest == batch

    def keep(self, learned: Learned) -> None:
        """Write what is known now, and drop what is too old to be asked for."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        notes = json.dumps({**learned.notes, "facts": self.facts}).encode()
        table = learned.table.replace_schema_metadata({_NOTE: notes})
        path = self._path(learned.batch)
        part = path.with_name(f".{path.name}")
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        os.replace(part, path)
        for old in self._batches()[:-KEPT]:
            self._path(old).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return Path(self.folder) / f"{batch}.arrow"

    def _batches(self) -> list[int]:
        return sorted(int(p.stem) for p in Path(self.folder).glob("*.arrow") if p.stem.isdigit())


def tested(rows: DataFrame, label: str, prediction: Callable[[], Column] | None) -> dict[str, int]:
    """How many rows were `tested` by a prediction, and how many it got `right`; None tests none."""
    if prediction is None:
        return {"tested": 0, "right": 0}
    named = column_named(label)
    judged = rows.where(named.isNotNull()).select(named.alias("label"), prediction())
    right = F.count_if(F.col("label") == F.col("prediction"))
    found = judged.agg(F.count("*"), right).collect()[0]
    return {"tested": int(found[0]), "right": int(found[1])}


def notes_of(before: Learned | None, batch: int, record: dict[str, int]) -> dict[str, Any]:
    """Notes of all tests so far: the last thousand one by one, and the sums of all."""
    told = {} if before is None else before.notes
    history = told.get("history", [])
    sums = told.get("sums") or {n: sum(one[n] for one in history) for n in record}
    return {
        "history": [*history, {"batch": batch, **record}][-TESTS_KEPT:],
        "sums": {name: sums[name] + record[name] for name in record},
    }


def share_right(learned: Learned | None) -> float | None:
    """The share of all tested rows that were right, None if none was tested."""
    if learned is None:
        return None
    history = learned.notes["history"]
    sums = learned.notes.get("sums")  # a folder of 0.2 has none
    tested, right = (
        sums[n] if sums else sum(one[n] for one in history) for n in ("tested", "right")
    )
    return right / tested if tested else None
