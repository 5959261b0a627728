"""What is no join is answered in one sentence, in the user's words, before any job."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import join
from tests.spark.joins import two_tables

COLD = list("efg")


@pytest.fixture(scope="module")
def tables(spark):
    return two_tables(spark, ["a", "b"], ["a", "c"], COLD)


@pytest.mark.parametrize(
    ("on", "how", "says"),
    [
        ("k", "sideways", "no join type 'sideways'"),
        ("nope", "inner", "no column of the left side 'nope'"),
        ("x", "inner", "no column of the right side 'x'"),
        ([("k", "nope")], "inner", "no column of the right side 'nope'"),
        ([], "inner", "a list of pairs"),
        (None, "inner", "a list of pairs"),
        (("k", "k"), "inner", "a list of pairs"),
        ([("k", "k", "k")], "inner", "a list of pairs"),
        (["k", ("k", "k")], "inner", "a list of pairs"),
        (["k", "k"], "inner", "repeat themselves"),
        (lambda: F.col("k") == F.col("k"), "inner", "give these as pairs"),
        ([("k", "m")], "inner", "cannot be a key"),
        ([("k", "s")], "inner", "do not compare"),
        ([("*", "k")], "inner", "The key '[*]' of the left side is not one column"),
        ([("k", "s.*")], "inner", "The key 's[.][*]' of the right side is not one column"),
        (lambda: [("k", F.col("*"))], "inner", "of the right side is not one column"),
        (lambda: [("k", F.sum("y"))], "inner", "not computed from one row alone"),
        (lambda: [("k", F.explode(F.array("y")))], "inner", "not computed from one row alone"),
        (lambda: [("k", F.row_number().over(Window.orderBy("y")))], "inner", "into no join"),
        (lambda: [("k", F.window("t", "1 hour"))], "inner", "of a time window"),
        (lambda: [(F.rand(), "y")], "inner", "is not the same when it is computed again"),
    ],
)
def test_what_is_no_join_is_refused_in_a_sentence_before_any_job(tables, on, how, says):
    left, right = tables
    right = right.withColumn("m", F.create_map("k", "y")).withColumn("s", F.struct("y"))
    right = right.withColumn("t", F.timestamp_seconds("y"))
    with pytest.raises(SkewlessError, match=says) as caught:
        join(left, right, on() if callable(on) else on, how)
    assert "\n" not in str(caught.value)


@pytest.mark.connect
@pytest.mark.parametrize("other_key", ["k", lambda: F.lower("k")])
@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (lambda: F.col("x") + 1, '"[(]x [+] 1[)]"'),
        (lambda: F.lit(1), "BOOLEAN"),
        (lambda: F.rand(1) > F.col("x"), "rand[(]1[)]"),
        (lambda: F.explode(F.array("x")) > 1, "explode"),
        (lambda: F.col("z") > 1, "`z`"),
    ],
)
def test_a_condition_that_is_none_is_refused_in_the_users_words(tables, other_key, condition, says):
    left, right = tables
    pair = ("k", other_key() if callable(other_key) else other_key)
    for other in (right, left.withColumnRenamed("x", "y")):
        with pytest.raises(SkewlessError, match=says) as caught:
            join(left, other, [pair, condition()])
        assert "skewless" not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_condition_of_a_table_with_itself_is_refused_in_the_users_words(tables):
    for condition in (F.lit(1), F.rand(1) > 0.5):
        with pytest.raises(SkewlessError, match="Spark cannot do this join") as caught:
            join(tables[0], tables[0], [("k", "k"), condition])
        assert "skewless" not in str(caught.value)
