"""From the plans in a log: what a stage computes, and by which columns its rows were placed.

A plan is a tree that shuffles cut into segments; a stage runs one of them. The metrics of the nodes
are accumulators, and a stage says which accumulators it moved: that ties them. A shuffle's own
metrics belong to two segments, those of writing to the one below and those of reading to the one
above it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_WRITING = {
    "data size",
    "number of partitions",
    "shuffle bytes written",
    "shuffle records written",
    "shuffle write time",
}
_PARTITIONING = re.compile(r"\b(?:hash|range|clustered|key(?:ed|grouped)?)partitioning\(", re.I)
_BY_ID = re.compile(r"\b\w*(?:passthrough|directshuffle|partitionid)\w*\(", re.I)
_ID = re.compile(r"#\d+L?\b")
_COUNT = re.compile(r", \d+\)")
_ORDER = re.compile(r" (?:ASC|DESC)(?: NULLS (?:FIRST|LAST))?$")
_LONGEST_COLUMN = 120
_MOST_COLUMNS = 100

# What a segment is called, by the names of its nodes; the first that fits. What needs its rows
# placed by a key comes before what works on them row by row, for that is where skew comes from.
_OPERATORS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("join", re.compile(r"SortMergeJoin|ShuffledHashJoin|CoGroup|SymmetricHashJoin|CartesianP")),
    ("window", re.compile(r"^(?:Arrow|Python)?Window(?!Group)|WindowInPandas|WindowPython")),
    ("python", re.compile(r"Pandas|InArrow|Python|InPy|PythonUDTF")),
    ("join", re.compile(r"Join")),
    ("aggregate", re.compile(r"Aggregate|StateStoreSave|GroupState|TransformWithState|Dedup")),
)
_SCAN = re.compile(r"^(?:\w*Scan\b|Range$)|ExistingRDD")


@dataclass(frozen=True, slots=True)
class Work:
    """What the nodes of a segment compute."""

    operator: str
    node: str  # the plan's own name of the node that gave the operator
    columns: tuple[str, ...]  # that the rows it reads were placed by
    pairs: tuple[tuple[str, str], ...] = ()  # of a join whose sides call a column differently


@dataclass(slots=True)
class _Segment:
    names: list[str] = field(default_factory=list)
    read_from: list[str] = field(default_factory=list)  # simple strings of the shuffles below
    written_to: str | None = None  # that of the shuffle above


class Plans:
    """All plans of one SQL execution: adaptive execution writes a new one with each change."""

    def __init__(self) -> None:
        self._work: dict[int, Work] = {}

    def add(self, root: Any) -> None:
        """A plan as the log has it; where it says otherwise than those before, it is right."""
        segments: list[_Segment] = [_Segment()]
        owners: dict[int, int] = {}
        stack: list[tuple[Any, int]] = [(root, 0)]
        while stack:
            node, at = stack.pop()
            if not isinstance(node, dict):
                continue
            name, text = str(node.get("nodeName", "")), str(node.get("simpleString", ""))
            shuffle = name in ("Exchange", "ShuffleExchange", "BroadcastExchange")
            below = at
            if shuffle:
                below = len(segments)
                segments.append(_Segment(written_to=text))
            if shuffle or name == "ReusedExchange":
                segments[at].read_from.append(text)
            else:
                segments[at].names.append(name)
            for metric in node.get("metrics") or ():
                number = metric.get("accumulatorId")
                writes = shuffle and metric.get("name") in _WRITING
                owners[number] = below if writes or name == "BroadcastExchange" else at
            # The left side of a join comes off the stack first.
            stack.extend((child, below) for child in reversed(node.get("children") or ()))
        works = [_work_of(segment) for segment in segments]
        self._work.update((number, works[at]) for number, at in owners.items())

    def work_of(self, accumulators: Iterable[int]) -> Work | None:
        """What the stage does that moved these accumulators."""
        votes = Counter(work for number in accumulators if (work := self._work.get(number)))
        return votes.most_common(1)[0][0] if votes else None


def _work_of(segment: _Segment) -> Work:
    placed = [text for text in segment.read_from if not text.startswith("BroadcastExchange")]
    columns = list(dict.fromkeys(c for text in placed for c in columns_of(text)))
    for operator, pattern in _OPERATORS:
        for name in segment.names:
            if pattern.search(name) and _fits(operator, name, bool(placed)):
                pairs = _pairs_of(placed) if operator == "join" else ()
                return Work(operator, name, tuple(columns), pairs)
    if placed:
        sorts = any(name.startswith("Sort") for name in segment.names)
        name = "Sort" if sorts and "rangepartitioning" in placed[0] else "Exchange"
        return Work("sort" if name == "Sort" else "exchange", name, tuple(columns))
    scans = [name for name in segment.names if _SCAN.search(name)]
    if scans:
        return Work("scan", scans[0], ())
    return Work("exchange" if segment.written_to else "other", "", ())


def _pairs_of(placed: list[str]) -> tuple[tuple[str, str], ...]:
    """What must be equal in a join, left and right; nothing where both sides call it the same."""
    sides = [columns_of(text) for text in placed]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]) or sides[0] == sides[1]:
        return ()
    return tuple(zip(*sides, strict=True))


def _fits(operator: str, name: str, placed: bool) -> bool:
    """A broadcast join needs no rows placed: where some are, something else asked for it."""
    return not (operator == "join" and placed and "Broadcast" in name)


def columns_of(text: str) -> list[str]:
    """The columns in a shuffle's partitioning, without the numbers that Spark gives them.

    >>> columns_of("Exchange hashpartitioning(customer_id#12L, day#3, 200), ENSURE_REQUIREMENTS")
    ['customer_id', 'day']
    """
    found = _PARTITIONING.search(text) or _BY_ID.search(text)
    if not found:
        return []
    parts = _arguments(text, found.end())
    if not parts and (last := _COUNT.search(text, found.end())):
        parts = [text[found.end() : last.start()]]  # a name with a bracket in it
    columns = [_ORDER.sub("", _ID.sub("", part)) for part in parts]
    found_columns = [
        c if len(c) <= _LONGEST_COLUMN else c[: _LONGEST_COLUMN - 1] + "…"
        for c in columns
        if c and not c.isdigit()
    ]
    return found_columns[:_MOST_COLUMNS]


def _arguments(text: str, start: int) -> list[str]:
    """The arguments of a call whose opening parenthesis is just before `start`."""
    parts, depth, begin = [], 0, start
    for at in range(start, len(text)):
        letter = text[at]
        if letter in "([":
            depth += 1
        elif letter == ")" and depth == 0:
            parts.append(text[begin:at].strip())
            return parts
        elif letter in ")]":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return parts  # cut short by Spark: what is whole
