"""Heavy hitters, top-k and trending on Spark, against plain counting, on batches and streams."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless.apps import heavy_hitters, top_k, trending
from skewless.errors import SkewlessError
from tests.spark.streams import Files, run_again

ORIGIN = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMES = ("key", "partial", "graded", "shuffle")


def words_of(count, seed=0):
    drawn = np.random.default_rng(seed).zipf(1.3, count) % 2000
    return [None if key == 7 else f"w{key}" for key in drawn.tolist()]


def timed(count, minutes=30, seed=0):
    at = np.sort(np.random.default_rng(seed).uniform(0, minutes, count)).tolist()
    times = [ORIGIN + timedelta(minutes=m) for m in at]
    return list(zip(times, words_of(count, seed), strict=True))


@pytest.fixture(scope="module")
def words(spark):
    return spark.createDataFrame([(w,) for w in words_of(20_000)], "w string").cache()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_heavy_hitters_hold_every_key_that_reaches_the_share(words, scheme):
    truth = Counter(words_of(20_000))
    found = heavy_hitters(words, "w", 0.02, scheme=scheme, workers=6)
    assert found.columns == ["w", "count", "error", "total", "sure"]
    rows = found.collect()
    assert {w for w, n in truth.items() if n >= 400} <= {row["w"] for row in rows}
    assert None in {row["w"] for row in rows}
    for row in rows:
        assert row["count"] - row["error"] <= truth[row["w"]] <= row["count"]
        assert row["error"] <= 0.002 * 20_000
        assert row["total"] == 20_000
        assert row["sure"] == (row["count"] - row["error"] >= 400)
    assert [row["count"] for row in rows] == sorted((row["count"] for row in rows), reverse=True)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_key_that_came_late_has_an_error_and_is_not_sure(spark, scheme):
    early = [(f"r{i % 300}",) for i in range(6000)]  # more keys than there are counters
    rows = spark.createDataFrame([*early, *[("late",)] * 300], "w string").coalesce(1)
    found = heavy_hitters(rows, "w", 0.05, epsilon=0.04, workers=2, scheme=scheme).collect()
    (late,) = (row for row in found if row["w"] == "late")
    assert late["error"] > 0
    assert late["count"] - late["error"] <= 300 <= late["count"]
    assert not late["sure"]


def test_a_key_may_be_called_rank_where_there_are_no_ranks(spark):
    rows = spark.createDataFrame([(1,), (1,), (2,)], "rank int")
    (row,) = heavy_hitters(rows, "rank", 0.5, workers=2).collect()
    assert (row["rank"], row["count"]) == (1, 2)


@pytest.mark.parametrize("share", [0.07, 0.14, 0.28, 0.55])
def test_a_key_that_reaches_the_share_exactly_is_there(spark, share):
    hits = round(share * 100)
    rest = F.col("id").cast("string")
    rows = spark.range(100).select(F.when(F.col("id") < hits, "hot").otherwise(rest).alias("k"))
    (row,) = heavy_hitters(rows, "k", share, workers=2).collect()
    assert (row["k"], row["count"], row["sure"]) == ("hot", hits, True)


def test_times_that_python_has_not_are_counted(spark):
    rows = spark.sql("select timestamp_micros(300000000000000000) as t from range(4)")
    for found in (heavy_hitters(rows, "t", workers=2), top_k(rows, "t", 1, counters=3, workers=2)):
        assert found.select(F.unix_micros("t"), "count").first() == (300_000_000_000_000_000, 4)


def test_text_may_be_large_to_arrow(spark):
    name = "spark.sql.execution.arrow.useLargeVarTypes"
    rows = spark.createDataFrame(timed(300, minutes=3), "t timestamp, w string")

    def found():
        rising = trending(rows, "w", "t", timedelta(minutes=1), 3, workers=2)
        return set(map(tuple, rising.collect()))

    expected = found()
    spark.conf.set(name, "true")
    try:
        assert found() == expected
    finally:
        spark.conf.unset(name)


def test_a_stream_of_counts_is_not_continued_with_another_key_or_other_workers(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "a string, b string")

    def answer(key="a", workers=3):
        files.put([("x", "y")] * 3)
        found = heavy_hitters(files.stream(), key, 0.3, workers=workers)
        return run_again(found, tmp_path / "c")

    assert answer()[-1]["count"] == 3
    assert answer()[-1]["count"] == 6
    for changed in ({"key": "b"}, {"key": F.upper("a").alias("a")}, {"workers": 2}):
        with pytest.raises(Exception, match="was written with the folds"):
            answer(**changed)


def test_text_that_is_no_utf8_is_counted_and_given_back_as_it_is(spark):
    raw = [b"\xff"] * 5 + [b"\xfe"] * 3 + [b"a"]
    rows = spark.createDataFrame([(one,) for one in raw], "b binary").select(
        F.col("b").cast("string").alias("w"), F.lit(ORIGIN).alias("t")
    )
    for found in (
        heavy_hitters(rows, "w", 0.01, workers=3),
        top_k(rows, "w", 3, workers=3),
        top_k(rows, "w", 3, counters=9, workers=3),
        trending(rows, "w", "t", timedelta(1), 3, workers=3).withColumnRenamed("now", "count"),
    ):
        seen = found.select(F.col("w").cast("binary").alias("b"), "count").collect()
        assert Counter({bytes(row.b): row["count"] for row in seen}) == Counter(raw)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_zeros_and_nans_are_counted_as_group_by_does(spark, kind):
    values = [(-0.0,)] * 3 + [(0.0,)] * 2 + [(float("nan"),)] * 4 + [(None,)]
    rows = spark.createDataFrame(values, f"k {kind}").repartition(3)
    expected = sorted((repr(row.k), row["count"]) for row in rows.groupBy("k").count().collect())
    assert ("0.0", 5) in expected
    for found in (
        heavy_hitters(rows, "k", 0.01, workers=2),
        top_k(rows, "k", 3, workers=2),
        top_k(rows, "k", 3, counters=5, workers=2),
    ):
        assert sorted((repr(row.k), row["count"]) for row in found.collect()) == expected


@pytest.mark.parametrize("name", ["a.b", "a`b"])
def test_what_is_counted_may_have_any_name_in_backticks(spark, name):
    rows = spark.createDataFrame([(1, ORIGIN), (1, ORIGIN), (2, ORIGIN)], "k int, t timestamp")
    named, key = rows.withColumnRenamed("k", name), "`" + name.replace("`", "``") + "`"
    for found in (
        heavy_hitters(named, key, 0.6, workers=2),
        top_k(named, key, 1, workers=2),
        top_k(named, "t", 1, by=key, workers=2),
        top_k(named, key, 1, counters=5, workers=2),
        trending(named, key, "t", timedelta(1), 1, workers=2),
    ):
        assert 1 in [row[name] for row in found.collect()]


def ranking(counts, k):
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] is None, pair[0] or ""))
    return [(rank + 1, w, n, 0) for rank, (w, n) in enumerate(order[:k])]


def test_top_k_is_exact_by_default(words):
    found = top_k(words, "w", 12, workers=5)
    assert found.columns == ["rank", "w", "count", "error"]
    assert sorted(map(tuple, found.collect())) == ranking(Counter(words_of(20_000)), 12)


def test_top_k_with_counters_says_how_far_it_may_be_off(words):
    truth = Counter(words_of(20_000))
    rows = top_k(words, "w", 5, counters=100, workers=5).collect()
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert {row["w"] for row in rows} == {w for _, w, _, _ in ranking(truth, 5)}
    assert all(r["count"] - r["error"] <= truth[r["w"]] <= r["count"] for r in rows)


def per_window(rows, minutes, slide):
    counts = defaultdict(Counter)
    for time, word in rows:
        start = int((time - ORIGIN).total_seconds()) // (60 * slide) * slide
        for first in range(start, start - minutes, -slide):
            counts[first][word] += 1
    return {(first, *row) for first, counted in counts.items() for row in ranking(counted, 3)}


def shown(rows):
    return {
        ((row["window"]["start"].astimezone(UTC) - ORIGIN) // timedelta(minutes=1), *row[1:])
        for row in rows
    }


@pytest.mark.parametrize("slide", [10, 5])
@pytest.mark.parametrize("counters", [None, 5000])
def test_top_k_per_window_of_a_batch(spark, slide, counters):
    rows = timed(3000)
    df = spark.createDataFrame(rows, "t timestamp, w string")
    window = F.window("t", "10 minutes", f"{slide} minutes")
    found = top_k(df, "w", 3, by=window, counters=counters, workers=4).collect()
    assert shown(found) == per_window(rows, 10, slide)


def test_top_k_per_window_of_a_stream_in_append_mode(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "t timestamp, w string")
    rows = timed(3000)
    for part in range(3):
        files.put(rows[part * 1000 : (part + 1) * 1000])
    files.put([(ORIGIN + timedelta(days=1), "end")])  # all windows before it end; many are empty
    stream = files.stream().withWatermark("t", "1 minute")
    window = F.window("t", "10 minutes")
    found = top_k(stream, "w", 3, by=window, workers=4, output_mode="append")
    assert shown(run_again(found, tmp_path / "c", "append")) == per_window(rows, 10, 10)


def test_heavy_hitters_of_a_stream_go_on_after_a_restart(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    rows = [(w,) for w in words_of(6000)]
    truth = Counter(w for (w,) in rows)
    files.put(rows[:2000])
    files.put(rows[2000:4000])
    run_again(heavy_hitters(files.stream(), "w", 0.05, workers=4), tmp_path / "c")
    files.put(rows[4000:])
    last = run_again(heavy_hitters(files.stream(), "w", 0.05, workers=4), tmp_path / "c")
    assert {w for w, n in truth.items() if n >= 300} <= {row["w"] for row in last}
    assert {row["total"] for row in last} == {6000}
    assert all(r["count"] - r["error"] <= truth[r["w"]] <= r["count"] for r in last)


def test_trending_is_the_same_on_a_batch_and_at_the_end_of_a_stream(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "t timestamp, w string")
    rows = timed(2000, minutes=60)
    new = [(ORIGIN + timedelta(minutes=55), "new")] * 40
    for part in (rows[:1000], rows[1000:], new):
        files.put(part)
    settings = {"half_life": 2, "workers": 3}
    batch = trending(files.batch(), "w", "t", timedelta(minutes=10), 4, **settings)
    assert batch.columns == ["rank", "period", "w", "now", "past", "growth", "error"]
    first, *others = batch.collect()
    assert (first["w"], first["now"], first["past"], first["error"]) == ("new", 40, 0, 0)
    assert first["period"].astimezone(UTC) == ORIGIN + timedelta(minutes=50)
    assert first["growth"] == (40 + 10) / (0 + 10)
    stream = trending(files.stream(), "w", "t", timedelta(minutes=10), 4, **settings)
    last = run_again(stream, tmp_path / "c")  # the rankings of all batches, one behind the other
    assert last[-4][2:] == first[2:]
    assert [row["w"] for row in last[-4:]] == ["new", *(row["w"] for row in others)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda df: top_k(df, "w", 0), "k must be at least 1, not 0"),
        (lambda df: top_k(df, "w", 10**9), "k must be at most 1,000,000, not 1,000,000,000"),
        (lambda df: top_k(df, "w", counters=10**19), "counters must be at most 1,000,000,000"),
        (lambda df: top_k(df, "w", 5, counters=3), "need at least 5 counters"),
        (lambda df: top_k(df, F.array("w")), "cannot be counted"),
        (lambda df: top_k(df, ["w", "w"]), "one column, not 2"),
        (lambda df: top_k(df.toDF("rank"), "rank"), "column 'rank' of its own"),
        (lambda df: heavy_hitters(df.toDF("count"), "count"), "column 'count' of its own"),
        (lambda df: top_k(df, "w", by=F.lit(1).alias("rank")), "column 'rank' of its own"),
        (lambda df: top_k(df, "w", by=F.lit(1).alias("W")), "both called 'w'"),
        (lambda df: heavy_hitters(df, "w", 0), "share is a share in"),
        (lambda df: heavy_hitters(df, "w", 0.1, epsilon=0.1), "must be below share"),
        (lambda df: heavy_hitters(df, "w", 1e-9), "more than 1,000,000,000 counters on each"),
        (lambda df: heavy_hitters(df, "w", 0.1, epsilon=5e-324), "give one of 1e-09 or more"),
        (lambda df: heavy_hitters(df, "nope"), "nope"),
        (lambda df: heavy_hitters(df, "w", by="zz"), r"no column 'zz'\. Valid: w\."),
        (lambda df: top_k(df, "w", output_mode="apend"), "did you mean 'append'"),
        (lambda df: top_k(df, "w", counters=10, output_mode="apend"), "did you mean 'append'"),
        (lambda df: heavy_hitters(df, "w", output_mode=None), "no output mode 'None'"),
        (lambda df: trending(df, "w", "w", timedelta(1)), "is not a time"),
        (lambda df: trending(df, "w", F.current_timestamp(), timedelta(0)), "period is"),
        (lambda df: trending(df, "w", F.current_timestamp(), timedelta.max), "at most 146,235 yea"),
    ],
)
def test_a_mistake_is_one_sentence(words, call, sentence):
    with pytest.raises(SkewlessError, match=sentence) as error:
        call(words)
    assert "\n" not in str(error.value)


def test_no_rows_give_no_rows(spark):
    empty = spark.createDataFrame([], "t timestamp, w string")
    assert heavy_hitters(empty, "w", workers=3).collect() == []
    assert top_k(empty, "w", counters=20, workers=3).collect() == []
    assert trending(empty, "w", "t", timedelta(1), workers=3).collect() == []
