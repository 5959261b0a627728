"""Grouping a stream: exactly what Spark's own aggregation of the same stream gives."""

from __future__ import annotations

import datetime
import decimal
import math

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import group, per_worker
from skewless.spark.input.state_store import IN_MEMORY, ROCKSDB, STATE_STORE
from tests.spark.own_folds import Longest
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_to_end

DDL = "w string, x double, n int, b binary, d decimal(10,2), t timestamp, s string"
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def rows(seed, count=300):
    random = np.random.default_rng(seed)
    doubles = [1.5, 0.0, -0.0, math.nan, -math.inf, None]
    for _ in range(count):
        rank = int(random.zipf(1.5)) % 20
        yield (
            {3: None, 4: "", 5: "naïve-€"}.get(rank, f"w{rank}"),
            doubles[int(random.integers(0, 6))],
            None if rank == 6 else int(random.integers(-3, 3)),
            None if rank == 7 else bytes([rank]),
            None if rank == 8 else decimal.Decimal(int(random.integers(0, 3))) / 100,
            None if rank == 9 else START + datetime.timedelta(days=365 * 400 * (rank % 2)),
            None if rank == 10 else "ab" * int(random.integers(0, 4)),
        )


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    made = Files(spark, tmp_path_factory.mktemp("stream") / "in", DDL)
    for seed in range(3):
        made.put(list(rows(seed)))
    return made


def canonical(row):
    return tuple("NaN" if v != v else v + 0.0 if isinstance(v, float) else v for v in row)


def last_of_each(seen, keys):
    """The newest row of each key: of several, the one that counts most messages."""
    newest = {}
    for row in seen:
        values = canonical(row)
        count = row["count"]
        if values[:keys] not in newest or newest[values[:keys]][0] < count:
            newest[values[:keys]] = count, values
    return {values for _, values in newest.values()}


BUILT_IN = (folds.count(), folds.sum("n"), folds.min("x"), folds.mean("d"), folds.max("s"))


def plain(df, *keys):
    return df.groupBy(*keys).agg(
        F.count(F.lit(1)).alias("count"), F.sum("n"), F.min("x"), F.avg("d"), F.max("s")
    )


@pytest.mark.parametrize(
    ("scheme", "workers", "keys", "mode"),
    [
        ("partial", 3, ["w"], "complete"),
        ("key", 9, ["w", "x"], "update"),
        ("shuffle", 2, ["x", "d"], "update"),
    ],
)
def test_built_in_folds_of_a_stream_equal_a_plain_group_by(
    files, tmp_path, scheme, workers, keys, mode
):
    ours = group(files.stream(), keys, scheme, workers).fold(*BUILT_IN)
    query, seen = run_to_end(ours, tmp_path / "checkpoint", mode)
    expected = {canonical(row) for row in plain(files.batch(), *keys).collect()}
    assert last_of_each(seen, len(keys)) == expected
    assert len(query.recentProgress) >= files.count
    metrics = query.lastProgress["stateOperators"][0]["customMetrics"]
    assert any("rocksdb" in name for name in metrics)


@pytest.mark.connect
def test_a_fold_of_ones_own_keeps_its_state_from_batch_to_batch(files, tmp_path):
    keys = ["w", "x", "n", "b", "d", "t"]
    ours = group(files.stream(), keys, "partial", 3).fold(folds.count(), Longest())
    _, seen = run_to_end(ours, tmp_path / "checkpoint", "update")
    plain = files.batch().groupBy(*keys)
    expected = plain.agg(F.count(F.lit(1)), F.max(F.length("s")).cast("long")).collect()
    assert last_of_each(seen, len(keys)) == {canonical(row) for row in expected}


def at(minutes):
    return START + datetime.timedelta(minutes=minutes)


@pytest.fixture(scope="module")
def late(spark, tmp_path_factory):
    """Windows that end while the stream runs, one at the watermark itself, and late messages."""
    made = Files(spark, tmp_path_factory.mktemp("late") / "in", "t timestamp, w string, s string")
    made.put([(at(1), "a", "x"), (at(2), "a", "yy"), (at(3), None, None)])
    made.put([(at(15), "a", "x"), (at(16), "b", "x")])
    made.put([(at(4), "a", "still in time"), (at(17), "b", "x")])
    made.put([(at(5), "a", "too late"), (at(31), "b", "x")])
    made.put([(at(18), "b", "too late"), (at(90), "c", "x")])
    return made


@pytest.fixture
def time_zone(spark, request):
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield request.param
    spark.conf.set(name, before)


@pytest.mark.parametrize(
    ("mode", "time_zone"),
    [("append", "Asia/Tokyo"), ("update", "America/New_York")],
    indirect=["time_zone"],
)
def test_windows_end_and_late_messages_are_dropped_as_spark_does_it(
    late, tmp_path, mode, time_zone
):
    stream = late.stream().withWatermark("t", "5 minutes")
    window = F.window("t", "10 minutes", "5 minutes")
    counts = stream.groupBy(window, "w").count()
    grouping = group(stream, [window, "w"], "shuffle", 3)
    own = grouping.fold(folds.count(), Longest(), output_mode=mode)
    _, expected = run_to_end(counts, tmp_path / "plain", mode)
    _, in_python = run_to_end(own, tmp_path / "own", mode)
    stripped = [type(r)(**{n: r[n] for n in counts.columns}) for r in in_python]
    assert sorted(map(repr, stripped)) == sorted(map(repr, expected))
    if mode == "append":
        _, natively = run_to_end(grouping.fold(folds.count()), tmp_path / "native", mode)
        assert sorted(map(repr, natively)) == sorted(map(repr, expected))
        everything = late.batch().groupBy(window, "w").count().collect()
        emitted = sum(row["count"] for row in expected)
        assert 0 < emitted < sum(row["count"] for row in everything), "nothing was late"


def test_a_time_as_the_key_ends_by_the_microsecond_and_none_at_all_never_does(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "t timestamp, s string")
    fine = START + datetime.timedelta(microseconds=500)
    for times in ([None, None, fine], [None, START], [None, fine]):
        files.put([(time, "x") for time in times])
    stream = files.stream().withWatermark("t", "0 seconds")
    _, expected = run_to_end(stream.groupBy("t").count(), tmp_path / "plain", "update")
    own = group(stream, "t", "shuffle", 2).fold(folds.count(), Longest())
    _, ours = run_to_end(own.drop("longest"), tmp_path / "own", "update")
    assert sorted(map(repr, ours)) == sorted(map(repr, expected))
    assert sorted(row["count"] for row in expected) == [1, 1, 2, 2, 3, 4]


def test_a_window_routes_by_the_other_columns_and_groups_a_batch_too(late):
    window = F.window("t", "10 minutes")
    grouping = group(late.batch(), [window, "w"], "partial", 3)
    assert "by the hash of w," in grouping.describe(folds.count())
    ours = grouping.fold(folds.count(), Longest())
    expected = late.batch().groupBy(window, "w").count()
    assert ours.drop("longest").dtypes == expected.dtypes
    assert {r[:3] for r in ours.collect()} == {tuple(r) for r in expected.collect()}
    alone = group(late.batch(), window, "shuffle", 3).fold(folds.count())
    assert sum(r["count"] for r in alone.collect()) == late.batch().count()


def test_streams_keep_their_state_in_rocksdb_unless_the_user_chose_otherwise(spark, files):
    before = spark.conf.get(STATE_STORE)
    try:
        spark.conf.unset(STATE_STORE)
        group(files.stream(), "w", "key", 2).fold(folds.count())
        assert spark.conf.get(STATE_STORE) == ROCKSDB
        for chosen in ("my.own.Store", IN_MEMORY):
            spark.conf.set(STATE_STORE, chosen)
            group(files.stream(), "w", "key", 2).fold(folds.count())
            assert spark.conf.get(STATE_STORE) == chosen
        with pytest.raises(SkewlessError, match="cannot keep state per worker in the store"):
            per_worker(files.stream(), "w", "key", 2, CountPerKey(), CountPerKey.SCHEMA)
    finally:
        spark.conf.set(STATE_STORE, before)


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            lambda g: g("w", "key").fold(Longest(), output_mode="complete"),
            "no output mode 'complete' for it",
        ),
        (lambda g: g("w", "key").fold(Longest(), output_mode="append"), "needs a key that ends"),
        (lambda g: g("w", "key").fold(Longest(), output_mode="apend"), "did you mean 'append'"),
        (lambda g: g("w", "key").fold(Longest(), output_mode=None), "no output mode 'None'"),
        (lambda g: g("w", "key").apply(lambda t: t, "w string"), "a stream never has them all"),
        (lambda g: g(F.session_window("t", "5 minutes"), "key"), "session window cannot be spread"),
        (lambda g: g("w", "distribution-aware"), "group a stream with checkpoint="),
        (lambda g: g("ww", "key"), "no column 'ww'"),
        (lambda g: g("w", "potc"), "remembers the worker of every key"),
        (lambda g: g("w", "key", checkpoint="s3a://bucket/x"), "'s3a://bucket/x' is not one"),
        (lambda g: g("w", "key", checkpoint="/proc/nothing"), "cannot be made"),
    ],
)
def test_mistakes_are_one_clear_sentence_before_the_stream_starts(files, run, sentence):
    def grouped(key, scheme, **more):
        return group(files.stream(), key, scheme, 3, **more)

    with pytest.raises(SkewlessError, match=sentence):
        run(grouped)


def test_a_checkpoint_is_for_streams_only(files, tmp_path):
    with pytest.raises(SkewlessError, match="A checkpoint belongs to a stream"):
        group(files.batch(), "w", "partial", 3, checkpoint=str(tmp_path))
