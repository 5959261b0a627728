"""What a user's function returns: taken, or refused, as Spark's own functions do it."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest

from skewless.errors import SkewlessError
from skewless.spark import balanced_map, group
from skewless.spark.input.conform import declared_for_apply, declared_for_map

DAY = datetime.datetime(2024, 1, 1)
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.int64())])
BY_NAME = "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName"


def one(name, value, kind):
    return {name: pa.array([value], kind)}


LONGS = {"a": pa.array([1]), "b": pa.array([2])}
SWAPPED = {"b": pa.array([2]), "a": pa.array([1])}
# The columns of a result, and the schema that is declared for it.
RESULTS = {
    "in order": (LONGS, "a long, b long"),
    "in another order": (SWAPPED, "a long, b long"),
    "one more": ({**LONGS, "c": pa.array([3])}, "a long, b long"),
    "one less": ({"a": pa.array([1])}, "a long, b long"),
    "none": ({}, "a long"),
    "other names": ({"c": pa.array([1])}, "a long"),
    "time as a number": (one("a", DAY, pa.timestamp("us", "UTC")), "a long"),
    "number as a time": (one("a", 5, pa.int64()), "a timestamp"),
    "span as a number": (one("a", datetime.timedelta(1), pa.duration("us")), "a long"),
    "day as a number": (one("a", DAY.date(), pa.date32()), "a int"),
    "narrower": (one("a", 5, pa.int32()), "a long"),
    "zone": (one("a", DAY, pa.timestamp("us", "Asia/Tokyo")), "a timestamp"),
    "no zone": (one("a", DAY, pa.timestamp("us")), "a timestamp"),
    "milliseconds": (one("a", DAY, pa.timestamp("ms", "UTC")), "a timestamp"),
    "large text": (one("a", "x", pa.large_string()), "a string"),
    "dictionary": ({"a": pa.array([7, 8]).dictionary_encode().slice(1)}, "a int"),
    "nulls": (one("a", None, pa.null()), "a long"),
    "times in a list": (one("a", [DAY], pa.list_(pa.timestamp("us", "UTC"))), "a array<long>"),
    "numbers in a list": (one("a", [1], pa.list_(pa.int64())), "a array<long>"),
    "ints in a list": (one("a", [1], pa.list_(pa.int32())), "a array<long>"),
    "struct": (one("a", {"a": 1, "b": 2}, STRUCT), "a struct<a: long, b: long>"),
    "longer struct": (one("a", {"a": 1, "b": 2}, STRUCT), "a struct<a: long>"),
    "map": (one("a", [("x", 1)], pa.map_(pa.string(), pa.int64())), "a map<string, long>"),
    "wide decimal": (one("a", decimal.Decimal("1.5"), pa.decimal128(12, 2)), "a decimal(10,2)"),
}
# What Spark's applyInArrow takes, as tried below for some; and what its mapInArrow reads rightly.
APPLIED = {"in order", "in another order", "none", "numbers in a list", "struct", "map"}
MAPPED = APPLIED - {"none"} | {"other names", "zone", "no zone", "large text", "nulls"}
MAPPED |= {"wide decimal"}
TRIED = ["in another order", "one more", "none", "time as a number", "narrower", "struct"]


def taken(declared, columns):
    """Whether it is taken, and that all else is refused with a sentence."""
    try:
        found = declared.conform(pa.table(columns))
    except SkewlessError:
        return False
    assert not columns or [str(c) for c in found.column_names] == list(columns) or declared.by_name
    return True


@pytest.mark.parametrize("case", RESULTS)
def test_what_is_returned_is_taken_or_refused_by_the_rules_of_spark(spark, case):
    columns, ddl = RESULTS[case]
    schema = spark.createDataFrame([], ddl).schema
    assert taken(declared_for_apply(spark, schema), columns) == (case in APPLIED)
    if case != "none":
        assert taken(declared_for_map(schema), columns) == (case in MAPPED)


def outcome(run):
    """The rows, or that there was an error."""
    try:
        return sorted(map(tuple, run().collect()))
    except Exception as error:
        return "SkewlessError" if "SkewlessError" in str(error) else "refused"


@pytest.mark.parametrize("case", TRIED)
def test_apply_takes_what_apply_in_arrow_takes(spark, case):
    columns, schema = RESULTS[case]
    df = spark.range(1)

    def function(table):
        return pa.table(columns)

    plain = outcome(lambda: df.groupBy("id").applyInArrow(function, schema))
    ours = outcome(lambda: group(df, "id", "key", 2).apply(function, schema))
    assert ours == ("SkewlessError" if plain == "refused" else plain)
    assert (ours != "SkewlessError") == (case in APPLIED)


@pytest.mark.parametrize("case", ["in another order", "large text", "nulls", "dictionary"])
def test_balanced_map_takes_what_map_in_arrow_reads_rightly(spark, case):
    columns, schema = RESULTS[case]
    df = spark.range(1)

    def function(batches):
        for batch in batches:
            yield pa.record_batch(columns).slice(0, batch.num_rows)

    ours = outcome(lambda: balanced_map(df, function, schema, key="id", scheme="shuffle"))
    if case in MAPPED:
        assert ours == outcome(lambda: df.mapInArrow(function, schema))
    else:
        assert ours == "SkewlessError"


def test_columns_go_by_place_where_spark_is_told_so(spark):
    spark.conf.set(BY_NAME, "false")
    try:
        df = spark.range(1)
        plain = df.groupBy("id").applyInArrow(lambda t: pa.table(SWAPPED), "a long, b long")
        ours = group(df, "id", "key", 2).apply(lambda t: pa.table(SWAPPED), "a long, b long")
        assert ours.collect() == plain.collect() == [(2, 1)]
    finally:
        spark.conf.unset(BY_NAME)


def test_the_sentence_names_the_column_and_both_types(spark):
    wrong = group(spark.range(1), "id", "key", 2)
    with pytest.raises(Exception, match=r"column 'a' of type int32, .* declares int64"):
        wrong.apply(lambda t: pa.table(one("a", 5, pa.int32())), "a long").collect()
    with pytest.raises(Exception, match=r"returned the columns 'a', .* declares 'a', 'b'"):
        wrong.apply(lambda t: pa.table({"a": [1]}), "a long, b long").collect()
