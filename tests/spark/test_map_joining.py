"""Results put together into batches of a good size."""

from __future__ import annotations

import pyarrow as pa

from skewless.spark.map import joining
from skewless.spark.map.joining import joined


def batch(*texts):
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["x"])


def test_all_rows_come_in_order_and_the_last_batch_is_known():
    texts = [["a"], [], ["b", "c"], ["d"] * 5000, ["e"]]
    found = list(joined(batch(*part) for part in texts))
    rows = [row for part, _ in found for row in part["x"].to_pylist()]
    assert rows == [text for part in texts for text in part]
    assert [last for _, last in found] == [False] * (len(found) - 1) + [True]


def test_heavy_results_behind_light_ones_are_not_held(monkeypatch):
    monkeypatch.setattr(joining, "_BYTES", 1000)
    results = [batch("a"), *(batch("b" * 900) for _ in range(14))]
    assert max(part.nbytes for part, _ in joined(results)) < 3000
    later = [*(batch("a") for _ in range(20)), *(batch("b" * 900) for _ in range(60))]
    assert max(part.nbytes for part, _ in joined(later)) < 20_000


def test_what_arrow_cannot_put_into_one_batch_is_not_lost(monkeypatch):
    monkeypatch.setattr(joining, "_together", list)  # as with more than 2 GiB of text
    found = list(joined([batch("a"), batch("b"), batch("c")]))
    assert [row for part, _ in found for row in part["x"].to_pylist()] == ["a", "b", "c"]
    assert [last for _, last in found] == [False, False, True]
