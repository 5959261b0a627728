"""Streams joined by a plan that their checkpoint keeps."""

from __future__ import annotations

import datetime as dt

import pytest
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import join, learn_join
from tests.spark.joins import settings, skewed
from tests.spark.streams import Files, run_to_end

COLD = [f"c{i}" for i in range(20)]
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def no_broadcast(spark):
    with settings(spark, spark_sql_autoBroadcastJoinThreshold=-1):
        yield


def clicks_and_views(spark, folder, hot=("hot", None)):
    """Two streams of three files each, with a hot key; the last rows are far ahead."""
    both = []
    for name, column, count in (("clicks", "x", 120), ("views", "y", 60)):
        files = Files(spark, folder / name, f"k string, {column} int, {column}t timestamp")
        for batch in range(2):
            rows = skewed(count, hot, COLD, batch)
            files.put([(k, i, START + dt.timedelta(minutes=batch)) for k, i in rows])
        files.put([("end", 0, START + dt.timedelta(days=1))])
        both.append(files)
    return both


def timely(files):
    frame = files.stream()
    return frame.withWatermark(frame.columns[-1], "1 minute")


def on():
    return [("k", "k"), F.expr("xt = yt")]


def run_on(frame, checkpoint):
    """Run all that is there from where the checkpoint stands; the rows that came out."""
    rows = []

    def keep(batch, number):
        rows.extend(batch.collect())

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    return rows


def sunk(rows):
    return sorted(map(str, rows))


def expected(left, right, how):
    """What a batch gives, but for the rows far ahead, whose partners might still come."""
    condition = [left.k == right.k, F.expr("xt = yt")]
    rows = left.join(right, condition, how).collect()
    return sunk(r for r in rows if "end" not in (r[0], r[3]) or how == "inner")


@pytest.mark.parametrize("how", ["inner", "left_outer", "full_outer"])
def test_two_streams_are_joined_exactly_over_restarts(spark, tmp_path, how):
    # A full join splits no key of streams, but spreads null keys.
    hot = (None,) if how == "full_outer" else ("hot", None)
    clicks, views = clicks_and_views(spark, tmp_path, hot)
    plan = learn_join(clicks.batch(), views.batch(), on(), how, result_weight=0)
    assert plan.spreads
    checkpoint = str(tmp_path / "checkpoint")
    first = join(timely(clicks), timely(views), on(), how, plan=plan, checkpoint=checkpoint)
    rows = run_on(first, checkpoint)
    for files in (clicks, views):
        files.put([("hot", 500, START + dt.timedelta(days=2))] * 3)
        files.put([("end", 1, START + dt.timedelta(days=3))])
    again = join(timely(clicks), timely(views), on(), how, checkpoint=checkpoint)
    more = run_on(again, checkpoint)
    found = sunk(r for r in [*rows, *more] if "end" not in (r[0], r[3]) or how == "inner")
    assert found == expected(clicks.batch(), views.batch(), how)


def test_state_is_even_and_a_restart_with_another_plan_is_refused(spark, tmp_path):
    clicks, views = clicks_and_views(spark, tmp_path)
    plan = learn_join(clicks.batch(), views.batch(), "k", result_weight=0)
    assert plan.spreads
    checkpoint = str(tmp_path / "checkpoint")
    joined = join(clicks.stream(), views.stream(), "k", plan=plan, checkpoint=checkpoint)
    run_to_end(joined, checkpoint, "append")
    state = spark.read.format("statestore").option("joinSide", "left").load(checkpoint)
    counts = [row["count"] for row in state.groupBy("partition_id").count().collect()]
    assert len(counts) == plan.partitions == 3
    assert max(counts) <= 1.5 * sum(counts) / 3
    other = learn_join(clicks.batch(), views.batch(), "k", result_weight=5)
    with pytest.raises(SkewlessError, match="another plan of a join by this key"):
        join(clicks.stream(), views.stream(), "k", plan=other, checkpoint=checkpoint)
    join(clicks.stream(), views.stream(), "k", plan=plan, checkpoint=checkpoint)
    (kept,) = (tmp_path / "checkpoint" / "skewless").glob("join-*.json")
    text = kept.read_text()
    digit = next(i for i in range(text.index("slots"), len(text)) if text[i].isdigit())
    kept.write_text(text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :])
    with pytest.raises(SkewlessError, match="is damaged, and what waits in the checkpoint"):
        join(clicks.stream(), views.stream(), "k", checkpoint=checkpoint)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_stream_joins_a_table_by_a_plan_of_earlier_rows(spark, tmp_path, how):
    clicks, _ = clicks_and_views(spark, tmp_path)
    table = spark.createDataFrame([(k, i) for i, k in enumerate(["hot", *COLD])], "k string, y int")
    plan = learn_join(clicks.batch(), table, "k", how)
    assert plan.spreads
    joined = join(clicks.stream(), table, "k", how, plan=plan)
    _, rows = run_to_end(joined, tmp_path / "checkpoint", "append")
    assert sunk(rows) == sunk(clicks.batch().join(table, "k", how).collect())


def test_what_a_stream_lacks_is_said_before_it_starts(spark, tmp_path):
    clicks, views = clicks_and_views(spark, tmp_path)
    left, right = clicks.stream(), views.stream()
    plan = learn_join(clicks.batch(), views.batch(), "k")
    with pytest.raises(SkewlessError, match="learn a plan from earlier rows"):
        join(left, views.batch(), "k")
    with pytest.raises(SkewlessError, match="give the folder of the query's checkpoint"):
        join(left, right, "k", plan=plan)
    with pytest.raises(SkewlessError, match="has no plan of this join yet"):
        join(left, right, "k", checkpoint=str(tmp_path / "none"))
    with pytest.raises(SkewlessError, match="not two streams"):
        join(clicks.batch(), views.batch(), "k", checkpoint=str(tmp_path / "none"))
    with pytest.raises(SkewlessError, match="from batch DataFrames"):
        learn_join(left, right, "k")
