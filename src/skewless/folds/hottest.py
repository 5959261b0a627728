"""The hottest keys of a worker by name, counted while its messages are grouped anyway.

A batch of messages is grouped by key before it is folded, so the number of each key's messages is
one pass over the group numbers; only the few keys of a batch that are hot in it become Python
objects. A count is never too high. It is too low by what the key had in batches where it was not
among them.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SHARE = 256  # a key is hot in a batch that it has one message of so many of
PER_BATCH = 16  # hot keys of a batch that are looked at
HELD = 512  # names that a worker holds at most
TOLD = 10  # names that it reports
LONGEST = 120  # characters of a name
_CUT = 80

Name = str | None


class HottestKeys:
    """Counts of the hottest keys of one worker."""

    def __init__(self) -> None:
        self._counts: dict[Name, int] = {}
        self._works = True

    def add(self, keys: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        """Take in a batch: its distinct keys, column by column, and the messages of each."""
        if not self._works:
            return
        try:
            self._add(keys, counts)
        except Exception:  # a name is for people to look at: no job may end for it
            self._works = False
            logging.getLogger(__name__).debug("Keys have no names.", exc_info=True)

    def _add(self, keys: Sequence[pa.Array], counts: npt.NDArray[np.int64]) -> None:
        top = np.flatnonzero(counts * SHARE >= counts.sum())
        if top.size > PER_BATCH:
            top = top[np.argsort(counts[top])[-PER_BATCH:]]
        columns = [names(column.take(pa.array(top))) for column in keys]
        for row, count in zip(zip(*columns, strict=True), counts[top].tolist(), strict=True):
            name = row[0] if len(row) == 1 else short(" · ".join(str(part) for part in row))
            self._counts[name] = self._counts.get(name, 0) + count
        if len(self._counts) > HELD:
            self._counts = dict(self.best(HELD // 2))

    def best(self, most: int = TOLD) -> list[tuple[Name, int]]:
        """The hottest keys with their counts, hottest first."""
        found = sorted(self._counts.items(), key=lambda item: item[1], reverse=True)
        return found[:most]


def names(column: pa.Array) -> list[Name]:
    """Keys as text of bounded length, null as None; what is not to be seen is escaped."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Spark does not check that text is UTF-8, and Arrow would refuse it.
        column = column.view(pa.binary() if pa.types.is_string(kind) else pa.large_binary())
        values = [None if b is None else b.decode(errors="replace") for b in column.to_pylist()]
    else:
        values = [_text(value) for value in column.to_pylist()]
    return [None if value is None else short(value) for value in values]


def _text(value: Any) -> Name:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex()
    return None if value is None else str(value)


def short(text: str) -> str:
    """Text of at most `LONGEST` characters; what is cut off stays told apart by a checksum."""
    if len(text) > LONGEST:
        check = zlib.crc32(text.encode(errors="surrogatepass"))
        text = f"{text[:_CUT]}… ({len(text):,} characters, {check:08x})"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
