"""The hottest keys of a worker by name."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from skewless import folds
from skewless.folds.hottest import HELD, LONGEST, TOLD, HottestKeys, names
from skewless.folds.worker import FoldJob, fold_batches


def counting(hottest):
    count = folds.count()
    return FoldJob(
        keys=1,
        folds=(count,),
        inputs=((),),
        partial_schema=pa.schema([("k0", pa.string()), ("p0", pa.int64())]),
        partial_counts=(1,),
        result_schema=pa.schema([("k0", pa.string()), ("r0", pa.int64())]),
        hottest=hottest,
    )


def test_the_hottest_keys_of_a_skewed_stream_are_found_and_never_counted_too_often():
    words = [f"w{rank}" for rank in np.random.default_rng(3).zipf(1.3, 200_000) % 50_000]
    batches = [
        pa.RecordBatch.from_arrays([pa.array(words[at : at + 10_000])], ["k0"])
        for at in range(0, len(words), 10_000)
    ]
    hottest, true = HottestKeys(), Counter(words)
    watched = list(fold_batches(counting(hottest), batches))
    found = hottest.best()
    assert len(found) == TOLD
    assert [name for name, _ in found] == [name for name, _ in true.most_common(TOLD)]
    for name, count in found:
        assert 0.95 * true[name] <= count <= true[name]
    plain = list(fold_batches(replace(counting(None)), batches))
    assert watched == plain


def test_what_a_worker_holds_and_reports_is_bounded():
    hottest = HottestKeys()
    for batch in range(200):
        hottest.add([pa.array([f"{batch}-{i}" * 100 for i in range(50)])], np.arange(50))
    assert len(hottest._counts) <= HELD
    assert len(hottest.best()) == TOLD
    assert all(len(name) <= LONGEST for name, _ in hottest.best())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", "", None, "<b>&", "مرحبا"]), ["a", "", None, "<b>&", "مرحبا"]),
        (pa.array(["a\nb", "\u202eabc"]), ["a\\nb", "\\u202eabc"]),
        (pa.array([b"\xff\xfe", b"word", None]), ["0xfffe", "word", None]),
        (pa.array([b"\xffx"]).view(pa.string()), ["\ufffdx"]),
        (pa.array([1, None, -5]), ["1", None, "-5"]),
        (pa.array([dt.date(2024, 2, 29)]), ["2024-02-29"]),
        (pa.array([{"a": 1, "b": "x"}]), ["{'a': 1, 'b': 'x'}"]),
    ],
)
def test_keys_of_every_kind_have_names(column, expected):
    assert names(column) == expected


def test_long_keys_are_cut_and_stay_apart():
    first, second = names(pa.array(["x" * 5000 + "1", "x" * 5000 + "2"]))
    assert first != second
    assert max(len(first), len(second)) <= LONGEST
    assert "5,001 characters" in first


def test_a_key_that_has_no_name_ends_no_job():
    hottest = HottestKeys()
    beyond = pa.array([2**62], pa.int64()).cast(pa.timestamp("us"))
    hottest.add([beyond], np.array([3]))
    hottest.add([pa.array(["a"])], np.array([1]))
    assert hottest.best() == []


def test_keys_of_several_columns_are_named_together():
    hottest = HottestKeys()
    hottest.add([pa.array(["a", "b"]), pa.array([1, None])], np.array([5, 4]))
    assert hottest.best() == [("a · 1", 5), ("b · None", 4)]
