"""Folds, against plain Python over one key at a time, however the messages are split."""

from __future__ import annotations

import collections
import decimal
import math
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless import folds
from skewless.errors import SkewlessError
from skewless.folds.groups import Groups, group_rows
from skewless.folds.worker import FoldJob, fold_batches, merge_sorted, split_sorted
from tests.sketches import needs_sketches

KEYS = st.sampled_from(["a", "b", "", "é", None])
LONGS = st.one_of(st.none(), st.integers(-(2**62), 2**62))
DOUBLES = st.one_of(
    st.none(), st.sampled_from([math.nan, -0.0, 0.0, math.inf]), st.floats(-1e6, 1e6, width=32)
)


def job_of(chosen, types, most_keys=1_000_000, most_bytes=256 << 20):
    keys = [pa.string()]
    names = list(types)
    kinds = [[types[c] for c in fold.columns] for fold in chosen]
    pairs = list(zip(chosen, kinds, strict=True))
    partials = [fold.partial_types(kind) for fold, kind in pairs]
    key_fields = [(f"k{i}", kind) for i, kind in enumerate(keys)]
    flat = [(f"p{i}", kind) for i, kind in enumerate(k for kinds in partials for k in kinds)]
    return FoldJob(
        keys=len(keys),
        folds=tuple(chosen),
        inputs=tuple(tuple(len(keys) + names.index(c) for c in f.columns) for f in chosen),
        partial_schema=pa.schema(key_fields + flat),
        partial_counts=tuple(map(len, partials)),
        result_schema=pa.schema(key_fields + [(f.name, f.result_type(kind)) for f, kind in pairs]),
        most_keys=most_keys,
        most_bytes=most_bytes,
    )


def folded(job, keys, values, splits=1, batch=3):
    """Split rows over workers, fold each in batches, merge sorted; key -> results."""
    partials = []
    for worker in range(splits):
        rows = range(worker, len(keys), splits)
        columns = [pa.array([keys[i] for i in rows], pa.string())]
        columns += [pa.array([v[i] for i in rows], kind) for v, kind in values]
        names = [str(i) for i in range(len(columns))]
        batches = pa.table(columns, names=names).to_batches(batch)
        partials += fold_batches(job, batches)
    if not partials:
        return {}
    table = pa.Table.from_batches(partials).sort_by("k0")
    rows = [row for b in merge_sorted(job, table.to_batches(2)) for row in b.to_pylist()]
    results = {row.pop("k0"): list(row.values()) for row in rows}
    assert len(results) == len(rows), "a key came out twice"
    return results


def by_key(keys, values):
    groups = collections.defaultdict(list)
    for key, value in zip(keys, values, strict=True):
        groups[key].append(value)
    return groups


def spark_order(value):
    return (True, 0.0) if value != value else (False, value)


@needs_sketches
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KEYS, LONGS), max_size=40), st.integers(1, 3), st.integers(1, 4))
def test_whole_numbers_fold_as_plain_python_folds_them(rows, splits, most_keys):
    keys, values = [k for k, _ in rows], [v for _, v in rows]
    chosen = [
        folds.count(),
        folds.count("x"),
        folds.mean("x"),
        folds.min("x"),
        folds.max("x"),
        folds.approx_count_distinct("x"),
        folds.top_k("x", 2),
    ]
    job = job_of(chosen, {"x": pa.int64()}, most_keys=most_keys)
    results = folded(job, keys, [(values, pa.int64())], splits)
    expected = by_key(keys, values)
    assert results.keys() == expected.keys()
    for key, group in expected.items():
        present = [v for v in group if v is not None]
        count, counted, mean, least, greatest, distinct, top = results[key]
        assert (count, counted) == (len(group), len(present))
        assert (least, greatest) == (min(present, default=None), max(present, default=None))
        assert distinct == len(set(present))
        if present:
            rounding = 1e-9 * max(map(abs, present))
            assert mean == pytest.approx(sum(present) / len(present), rel=1e-9, abs=rounding)
        else:
            assert mean is None
        ranked = sorted(collections.Counter(present).items(), key=lambda e: (-e[1], e[0]))[:2]
        assert [(e["item"], e["count"], e["error"]) for e in top] == [(v, n, 0) for v, n in ranked]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(-(2**63), 2**63 - 1)), max_size=40))
def test_a_sum_of_longs_overflows_only_if_the_total_does(rows):
    keys, values = [k for k, _ in rows], [v for _, v in rows]
    job = job_of([folds.sum("x")], {"x": pa.int64()})
    totals = {key: sum(group) for key, group in by_key(keys, values).items()}
    if all(-(2**63) <= total < 2**63 for total in totals.values()):
        results = folded(job, keys, [(values, pa.int64())], 2)
        assert {key: row[0] for key, row in results.items()} == totals
    else:
        with pytest.raises(SkewlessError, match="overflows a long"):
            folded(job, keys, [(values, pa.int64())], 2)


def test_many_small_negative_numbers_have_small_halves():
    fold = folds.sum("x")
    high, low = fold.reduce_groups(Groups(np.zeros(3, np.int64), 1), [pa.array([-1, -2, 3])])
    assert (high.to_pylist(), low.to_pylist()) == ([0], [0])
    billions = [pa.array([0]), pa.array([-3 * 2**30])]
    assert fold.finish_groups(billions).to_pylist() == [-3 * 2**30]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(KEYS, DOUBLES), max_size=30), st.integers(1, 3))
def test_min_and_max_of_doubles_put_nan_above_every_number(rows, splits):
    keys, values = [k for k, _ in rows], [v for _, v in rows]
    job = job_of([folds.min("x"), folds.max("x")], {"x": pa.float64()})
    results = folded(job, keys, [(values, pa.float64())], splits)
    for key, group in by_key(keys, values).items():
        present = [v for v in group if v is not None]
        for result, pick in zip(results[key], (min, max), strict=True):
            expected = pick(present, key=spark_order, default=None)
            assert result == expected or (result != result and expected != expected)


def test_sum_and_mean_keep_the_places_of_decimals():
    values = [decimal.Decimal(v) for v in ("1.10", "2.20", "0.01")]
    kind = pa.decimal128(10, 2)
    job = job_of([folds.sum("x"), folds.mean("x")], {"x": kind})
    assert [f.type for f in job.result_schema][1:] == [pa.decimal128(20, 2), pa.decimal128(14, 6)]
    (total, mean) = folded(job, ["a"] * 3, [(values, kind)])["a"]
    assert total == decimal.Decimal("3.31")
    assert mean == decimal.Decimal("1.103333")


def test_means_of_decimals_have_four_more_places_than_the_values():
    values = [decimal.Decimal(v) for v in ("1.0001", "2.0000", "2.0001")]
    kind = pa.decimal128(10, 4)
    job = job_of([folds.mean("x")], {"x": kind})
    assert folded(job, ["a"] * 3, [(values, kind)])["a"] == [decimal.Decimal("1.66673333")]
    assert folds.mean("x").native([pa.decimal128(25, 4)]) is None, "its sum has too many digits"


def test_a_sum_of_decimals_beyond_38_digits_is_one_sentence():
    kind = pa.decimal128(38, 0)
    job = job_of([folds.sum("x")], {"x": kind})
    wide = [decimal.Decimal(9).scaleb(37)] * 4
    with pytest.raises(SkewlessError, match="overflows the 38 digits of a decimal"):
        folded(job, ["a"] * 4, [(wide, kind)])
    there_and_back = [wide[0], wide[0], -wide[0]]
    assert folded(job, ["a"] * 3, [(there_and_back, kind)])["a"] == [wide[0]]


def test_min_and_max_order_strings_bytes_and_truths():
    job = job_of([folds.min("s"), folds.max("b")], {"s": pa.string(), "b": pa.bool_()})
    values = [(["z", "é", "", None], pa.string()), ([None, False, True, False], pa.bool_())]
    assert folded(job, ["a"] * 4, values, 2)["a"] == ["", True]


def test_groups_take_null_nan_and_negative_zero_as_spark_does():
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    floats = pa.concat_arrays(
        [pa.array([0.0, -0.0, None, float("nan")], from_pandas=False), pa.array(other_nan)]
    )
    words = pa.array(["a", "a", None, "b", "b"])
    groups, rows = group_rows([floats, words])
    assert groups.ids.tolist() == [0, 0, 1, 2, 2]
    assert groups.size == 3
    assert rows[1].to_pylist() == ["a", None, "b"]


def test_top_k_errs_by_no_more_than_it_says():
    random = np.random.default_rng(3)
    values = random.zipf(1.3, 4000) % 500
    job = job_of([folds.top_k("x", 5, counters=20)], {"x": pa.int64()})
    top = folded(job, ["a"] * 4000, [(values.tolist(), pa.int64())], splits=4, batch=100)["a"][0]
    truth = collections.Counter(values.tolist())
    assert len(top) == 5
    for entry in top:
        assert entry["count"] <= truth[entry["item"]] <= entry["count"] + entry["error"]
        assert entry["error"] <= 4000 / 21
    assert top[0]["item"] == truth.most_common(1)[0][0]


def test_the_old_name_of_approx_count_distinct_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match="now folds.approx_count_distinct"):
        assert folds.distinct_count("x").name == "distinct_count(x)"


def test_approx_count_distinct_without_its_package_is_refused_before_a_job_starts(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(SkewlessError, match="needs the package datasketches, which this Python"):
        folds.approx_count_distinct("x").partial_types([pa.int64()])


@needs_sketches
def test_approx_count_distinct_is_close_for_many_values():
    values = np.arange(20_000) % 9_000
    job = job_of([folds.approx_count_distinct("x")], {"x": pa.int64()})
    found = folded(job, ["a"] * 20_000, [(values.tolist(), pa.int64())], 2, batch=5_000)["a"][0]
    assert found == pytest.approx(9_000, rel=0.05)


def test_a_worker_hands_partials_on_when_it_holds_too_many_keys_or_bytes():
    batches = [pa.record_batch({"k": [str(i), "hot"]}) for i in range(100)]
    few_keys = job_of([folds.count()], {}, most_keys=10)
    handed = list(fold_batches(few_keys, batches))
    assert len(handed) > 5
    assert max(b.num_rows for b in handed) <= 12
    assert sum(sum(b["p0"].to_pylist()) for b in handed) == 200
    few_bytes = job_of([folds.count()], {}, most_bytes=400)
    assert len(list(fold_batches(few_bytes, batches))) > 2
    assert len(list(fold_batches(job_of([folds.count()], {}), batches))) == 1


def test_rows_sorted_by_key_are_split_at_every_change_across_batches():
    table = pa.table({"k": [None, None, "a", "a", "a", "b"], "x": [1, 2, 3, 4, 5, 6]})
    seen = []

    def collect(rows):
        seen.append(rows["x"].to_pylist())
        return rows

    out = list(split_sorted(1, table.to_batches(2), collect))
    assert seen == [[1, 2], [3, 4, 5], [6]]
    assert sum(b.num_rows for b in out) == 6


class Spread(folds.PerKeyFold):
    name = "spread"
    columns = ("x",)
    result = pa.float64()

    def zero(self):
        return []

    def reduce(self, state, x):
        return self.merge(state, x.to_pylist())

    def merge(self, a, b):
        both = [*a, *b]
        return [min(both), max(both)] if both else []

    def finish(self, state):
        return state[1] - state[0] if state else None


class Calls(Spread):
    name = "calls"

    def zero(self):
        return 0

    def reduce(self, state, x):
        return state + 1

    def merge(self, a, b):
        return a + b

    def finish(self, state):
        return float(state)


def test_a_fold_of_ones_own_is_called_once_per_key_and_batch():
    job = job_of([Spread(), Calls()], {"x": pa.float64()})
    values = [float(i) for i in range(12)]
    results = folded(job, ["a", "b"] * 6, [(values, pa.float64())], splits=1, batch=4)
    assert results == {"a": [10.0, 3.0], "b": [10.0, 3.0]}


@pytest.mark.parametrize(
    "fold",
    [
        Spread(),
        folds.count(),
        folds.sum("x"),
        folds.mean("x"),
        folds.min("x"),
        folds.max("x"),
        pytest.param(folds.approx_count_distinct("x"), marks=needs_sketches),
        folds.top_k("x", 2),
        folds.sleeping(folds.count("x"), 0.0),
    ],
    ids=lambda fold: fold.name,
)
def test_the_built_in_folds_obey_the_laws(fold):
    folds.check_fold(fold, {"x": [1.0, 7.0, 3.0, 12.0, 7.0, float("inf")]})


def test_a_sleeping_fold_sleeps_once_per_batch_for_all_its_messages(monkeypatch):
    slept_s = []  # of this fold alone: threads that other tests left sleep too
    monkeypatch.setattr("skewless.folds.delay.time", SimpleNamespace(sleep=slept_s.append))
    job = job_of([folds.sleeping(folds.count(), 0.05)], {})
    assert folded(job, ["a", "b"] * 30, [], batch=40) == {"a": [30], "b": [30]}
    assert slept_s == pytest.approx([0.002, 0.001])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: folds.top_k("x", 0), "at least 1 value, not 0"),
        (lambda: folds.top_k("x", "3"), "k of top_k is a whole number, not '3'"),
        (lambda: folds.top_k("x", 2.5), "k of top_k is a whole number, not 2.5"),
        (lambda: folds.top_k("x", counters=True), "is a whole number, not True"),
        (lambda: folds.top_k("x", 5, counters=4), "needs at least 5 counters"),
        (lambda: folds.approx_count_distinct("x", "12"), "is a whole number, not '12'"),
        (lambda: folds.sleeping("x", 1), "sleeping takes a fold"),
        (lambda: folds.sleeping(folds.count(), "1"), "is a number, not '1'"),
        (lambda: folds.sleeping(folds.count(), 1, [1, None]), "is a number, not None"),
        (lambda: folds.approx_count_distinct("x", 30), "from 7 to 21, not 30"),
        (lambda: folds.sleeping(folds.count(), -1), "0 ms or more, not -1"),
        (lambda: folds.sum(3), "takes the name of a column"),
        (lambda: folds.sum("x").partial_types([pa.string()]), "cannot fold column 'x'"),
        (lambda: folds.max("x").partial_types([pa.list_(pa.int64())]), "cast it first"),
    ],
)
def test_mistakes_are_one_clear_sentence(make, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        make()


def test_an_alias_stays_as_it_was_given():
    assert folds.sum("a.b").alias("total of a.b").over(["b"]).name == "total of a.b"
    assert folds.sleeping(folds.sum("a").alias("a"), 1).over(["b"]).name == "a"
    assert folds.sum("a").over(["b"]).name == "sum(b)"


def test_an_alias_renames_the_result_only():
    fold = folds.sum("x").alias("total")
    assert (fold.name, fold.columns) == ("total", ("x",))
    assert folds.sum("x").name == "sum(x)"
