"""The rows that the campaign works on, in files, and what plain Python makes of them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Totals = Counter[Any]
SCHEMA = "id long, w string, s string, label string, a double, t timestamp"
OTHERS = "y long, w string"
ORIGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def key_of(i: int) -> str | None:
    return "hot" if i % 3 == 0 else None if i % 5 == 0 else f"w{i % 101}"


def label_of(i: int) -> str:
    return "x" if i % 7 < 5 else "y"


def put(folder: Path, number: int, count: int) -> None:
    """One more file of rows, and one of the few that they are joined with."""
    ids = range(number * count, (number + 1) * count)
    columns = {
        "id": list(ids),
        "w": [key_of(i) for i in ids],
        "s": ["s" * (i % 13) for i in ids],
        "label": [label_of(i) for i in ids],
        "a": [float(i % 7) for i in ids],
        "t": pa.array([ORIGIN + dt.timedelta(seconds=i) for i in ids], pa.timestamp("us", "UTC")),
    }
    others = list(range(number * 20, number * 20 + 20))
    words = ["hot" if y % 10 == 0 else f"w{y % 101}" for y in others]
    _write(folder / "in", number, columns)
    _write(folder / "others", number, {"y": others, "w": words})


def _write(folder: Path, number: int, columns: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    part = folder / f".{number}"
    pq.write_table(pa.table(columns), part)
    part.rename(folder / f"{number:03}.parquet")


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """All rows, in the order of the files."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        found += pq.read_table(path).to_pylist()
    return found


def folded(rows: list[dict[str, Any]]) -> Totals:
    """What all folds together find, by key and fold."""
    totals: Totals = Counter()
    labels: dict[Any, Counter[str]] = {}
    for row in rows:
        labels.setdefault(row["w"], Counter())[row["label"]] += 1
    for w, counts in labels.items():
        mine = [row for row in rows if row["w"] == w]
        ids = [row["id"] for row in mine]
        item, count = min(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        longest = max(len(row["s"]) for row in mine)
        totals[w, "count"], totals[w, "sum"] = len(ids), sum(ids)
        totals[w, "mean", round(sum(ids) / len(ids), 6)] = 1
        totals[w, "min", min(ids)] = totals[w, "max", max(ids)] = 1
        totals[w, "distinct", len(counts)] = totals[w, "top", item, count] = 1
        totals[w, "longest", longest] = 1
    return totals


def statistics(rows: list[dict[str, Any]]) -> Totals:
    """What naive Bayes counts of the features w and s."""
    totals: Totals = Counter()
    for row in rows:
        totals[None, None, row["label"]] += 1
        for feature in ("w", "s"):
            if row[feature] is not None:
                totals[feature, row[feature], row["label"]] += 1
    return totals


def pairs(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> Totals:
    """What an inner join gives."""
    by_word: dict[str, list[int]] = {}
    for other in others:
        by_word.setdefault(other["w"], []).append(other["y"])
    return Counter((r["w"], r["id"], y) for r in rows for y in by_word.get(r["w"], ()))
