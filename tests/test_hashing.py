"""Identities are Spark's xxhash64; choices are distinct and even. (Spark itself: tests/spark.)"""

import struct
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import skewless
from skewless.errors import SkewlessError
from skewless.hashing import choices, identities, identity, least_prime
from tests.naive import hashing as naive


@given(st.lists(st.one_of(st.none(), st.text(), st.text(min_size=30, max_size=200))))
def test_arrays_of_text_hash_as_each_word_does(words):
    expected = [42 if w is None else xxhash.xxh64_intdigest(w.encode(), seed=42) for w in words]
    array = pa.array(words, pa.string())
    assert identities(array).tolist() == expected
    assert identities(array.dictionary_encode()).tolist() == expected
    assert [identity(w) for w in words] == expected


@given(st.lists(st.binary(max_size=100), min_size=3))
def test_bytes_and_sliced_arrays_hash_by_their_own_bytes(values):
    whole = identities(pa.array(values, pa.binary()))
    assert identities(pa.array(values, pa.binary())[2:]).tolist() == whole[2:].tolist()
    assert whole.tolist() == [xxhash.xxh64_intdigest(v, seed=42) for v in values]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_longs_hash_by_their_eight_bytes(values):
    expected = [
        xxhash.xxh64_intdigest(v.to_bytes(8, "little", signed=True), seed=42) for v in values
    ]
    assert identities(np.array(values, np.int64)).tolist() == expected


def test_the_identity_depends_on_the_width_of_a_whole_number():
    narrow = identities(np.array([1], np.int32))
    assert narrow.tolist() == [xxhash.xxh64_intdigest((1).to_bytes(4, "little"), seed=42)]
    assert narrow.tolist() != identities(np.array([1], np.int64)).tolist()
    assert narrow.tolist() == identities(np.array([1], np.int16)).tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.array([5, -6], np.int64),
        np.array([5, -6], np.int32),
        np.array([5, 6], np.uint64),
        np.array([0.5, np.nan], np.float32),
        np.array([True, False]),
        [date(2024, 2, 29)],
        [datetime(2024, 2, 29, 12, 30, tzinfo=UTC)],
        [b"a", None],
    ],
)
def test_one_key_has_the_identity_that_an_array_of_it_has(values):
    assert [identity(value) for value in values] == identities(values).tolist()
    assert [identity(("a", value)) for value in values] == identities(
        ["a"] * len(values), values
    ).tolist()


def test_nulls_hash_as_nothing_wherever_they_stand():
    inside = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    assert identities(inside).tolist() == identities(["a", None]).tolist()
    assert identities([None, None]).tolist() == [42, 42]


def test_nulls_may_stand_in_columns_of_any_type():
    days = pa.array([1, None, 3], pa.int32()).cast(pa.date32())
    assert identities(days)[[0, 2]].tolist() == identities(days.drop_null()).tolist()
    assert identities(days)[1] == 42
    words = pa.array([f"w{i}" for i in range(128)])
    coded = pa.DictionaryArray.from_arrays(pa.array([127, None], pa.int8()), words)
    assert identities(coded).tolist() == identities(["w127", None]).tolist()
    with pytest.raises(SkewlessError, match="cannot be hashed"):
        identities(pa.array([[1], None]))


def test_times_finer_than_microseconds_hash_as_spark_keeps_them():
    fine = pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))
    plain = pa.array([1_700_000_000_123_456], pa.timestamp("us"))
    assert identities(fine).tolist() == identities(plain).tolist()


def test_each_type_hashes_by_the_bytes_that_spark_hashes():
    def of_bytes(form, value):
        return [xxhash.xxh64_intdigest(struct.pack(form, value), seed=42)]

    assert identities([date(2024, 2, 29)]).tolist() == of_bytes("<i", 19782)
    assert identities(np.array([0.5], np.float32)).tolist() == of_bytes("<f", 0.5)
    assert identities(np.array([0.5])).tolist() == of_bytes("<d", 0.5)
    assert identities(np.array([True])).tolist() == of_bytes("<i", 1)
    micros = 1_700_000_000_123_456
    assert identities(pa.array([micros], pa.timestamp("us"))).tolist() == of_bytes("<q", micros)


@pytest.mark.parametrize("key", [2**64, 1j, [1], {"a": 1}, "\ud800"])
def test_a_key_that_cannot_be_hashed_is_one_sentence(key):
    with pytest.raises(SkewlessError, match=r"^[A-Z].*\S$"):
        identity(key)


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (pd.DataFrame({"a": ["x"]}), "Keys are .*, and one DataFrame is neither."),
        (pa.table({"a": ["x"]}), "Keys are .*, and one Table is neither."),
        (pa.record_batch({"a": ["x"]}), "Keys are .*, and one RecordBatch is neither."),
        (["\ud800"], "Keys are of one type .*, and these are not"),
    ],
    ids=["frame", "table", "batch", "text"],
)
def test_an_array_that_cannot_be_hashed_is_one_sentence(keys, sentence):
    with pytest.raises(SkewlessError, match=f"^{sentence}"):
        identities(keys)


def test_zero_has_one_sign_and_nan_one_bit_pattern():
    strange = np.array([0x7FF8000000000001], np.uint64).view(np.float64)[0]
    hashed = identities(np.array([0.0, -0.0, np.nan, strange]))
    assert hashed[0] == hashed[1]
    assert hashed[2] == hashed[3]
    assert hashed[0] != hashed[2]


@given(st.lists(st.tuples(st.one_of(st.none(), st.text()), st.integers(-5, 5)), min_size=1))
def test_several_columns_are_chained_and_null_leaves_the_hash_as_it_was(rows):
    words, numbers = zip(*rows, strict=True)
    hashed = identities(pa.array(words, pa.string()), pa.array(numbers, pa.int64()))
    assert hashed.tolist() == [identity(row) for row in rows]
    assert identity((None, 3)) == identity(3)


@given(st.integers(0, 2**64 - 1), st.integers(1, 120), st.integers(0, 2**30 - 1), st.data())
def test_choices_are_distinct_and_equal_the_naive_ones(key, workers, seed, data):
    count = data.draw(st.integers(1, workers))
    chosen = choices(key, workers, count, seed)
    assert len(set(chosen)) == count
    assert chosen == naive.choices(key, workers, count, seed)


@pytest.mark.parametrize(
    ("workers", "pair"),
    [(w, p) for w in (2, 3, 10, 50) for p in ((0, 1), (1, 2), (2, 4)) if p[1] < w],
)
def test_workers_and_ordered_pairs_of_choices_are_uniform(workers, pair):
    keys = 20 * workers * workers
    chosen = np.array([choices(identity(key), workers, pair[1] + 1) for key in range(keys)])
    for column in pair:
        assert stats.chisquare(np.bincount(chosen[:, column], minlength=workers)).pvalue > 1e-4
    joint = np.bincount(chosen[:, pair[0]] * workers + chosen[:, pair[1]], minlength=workers**2)
    apart = ~np.eye(workers, dtype=bool).ravel()
    assert joint[~apart].sum() == 0
    if pair == (0, 1):
        assert stats.chisquare(joint[apart]).pvalue > 1e-4
    else:
        # Leaving out numbers ≥ W makes later pairs a little uneven: no pair is rare or common.
        assert joint[apart].max() < 4 * joint[apart].mean()


def test_bad_input_is_one_sentence():
    with pytest.raises(SkewlessError, match="at least 5 workers"):
        choices(1, 4, 5)
    with pytest.raises(SkewlessError, match="differ in length"):
        identities([1, 2], [1])
    with pytest.raises(SkewlessError, match="array or a list of values, and one int is neither"):
        skewless.route(5, "partial", 3)
    with pytest.raises(SkewlessError, match="cannot be hashed"):
        identities(pa.array([[1]]))
    with pytest.raises(SkewlessError, match="A seed is"):
        choices(1, 4, 2, seed=2**30)


def test_least_prime():
    assert [least_prime(n) for n in (1, 2, 4, 50, 97, 100)] == [2, 2, 5, 53, 97, 101]
