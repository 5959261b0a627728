"""Diagnosis on Spark: a DataFrame's keys, code that runs as it is, two results compared."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import diagnose, diagnose_keys, verify
from skewless.spark.diagnose.verify import verdict

WORKERS = 4


@pytest.fixture(scope="module")
def rows(spark):
    key = (
        F.when(F.col("id") % 10 < 4, F.lit("hot"))
        .when(F.col("id") % 10 == 4, F.lit(None))
        .otherwise(F.concat(F.lit("cold-"), (F.col("id") % 97).cast("string")))
    )
    return spark.range(0, 6000, 1, 3).select(
        key.alias("user id"),
        (F.col("id") % 3).alias("day"),
        F.expr("CAST(CAST(id % 2 AS STRING) AS BINARY)").alias("bytes"),
        F.when(F.col("id") % 10 < 4, F.lit(5.0)).otherwise(F.lit(1.0)).alias("cost"),
    )


@pytest.mark.connect
def test_a_dataframe_s_hot_keys_nulls_and_counts_are_found_in_one_pass(rows):
    found = diagnose(rows, "user id", WORKERS)
    assert (found.messages, found.nulls, found.keys) == (6000, 600, 99)
    assert (found.hot[0].key, found.hot[0].share, found.hot[0].error) == ("hot", 0.4, 0.0)
    assert (found.hot[1].key, found.hot[1].share) == ("null", 0.1)
    assert found.sources == 3
    plain = found.candidates[0]
    assert plain.scheme == "key"
    assert plain.time_over_ideal > 1.5
    assert found.choice.startswith("graded")


def test_plain_hash_is_predicted_as_route_does_it(rows):
    from skewless.spark import route

    counts = route(rows, "user id", "key", WORKERS).groupBy("worker").count().collect()
    loads = [0] * WORKERS
    for row in counts:
        loads[row.worker] = row["count"]
    predicted = diagnose(rows, "user id", WORKERS).candidates[0].loads
    assert [round(6000 * share) for share in predicted] == loads


@pytest.mark.parametrize(
    ("work", "counted"),
    [("fold", 99), ("group", 99), ("map", 6000), ("aggregate", 99)],
)
def test_the_code_to_paste_runs_as_it_is(rows, work, counted):
    found = diagnose(rows, "user id", WORKERS, work=work)
    names = {"df": rows}
    exec(found.code, names)
    assert names["result"].count() == counted


@pytest.mark.parametrize("scheme", ["key", "graded-planned"])
def test_the_code_of_every_other_fold_runs_too(rows, scheme):
    from skewless.diagnose.reading import given
    from skewless.diagnose.verdict import _code

    names = {"df": rows}
    exec(_code(scheme, "fold", WORKERS, given("['user id', 'day']", "user id, day")), names)
    truth = rows.groupBy("user id", "day").count()
    assert sorted(map(str, names["result"].collect())) == sorted(map(str, truth.collect()))


def test_the_code_for_balanced_map_runs_too(rows):
    from skewless.diagnose.reading import given
    from skewless.diagnose.verdict import _code

    names = {"df": rows}
    exec(_code("proactive", "map", WORKERS, given("'user id'", "user id")), names)
    assert names["result"].count() == 6000


@pytest.mark.parametrize("kind", ["zipf", "words", "tsv", "csv", "parquet"])
def test_the_code_for_a_stream_or_file_reads_it_by_itself(rows, tmp_path, kind):
    from skewless.diagnose.data import diagnose_stream

    path = tmp_path / f"file.{kind}"
    words = ["a"] * 20 + ["b", "c"]
    specs = {
        "zipf": "zipf:z=1.5,keys=20,messages=3000",
        "words": f"words:path={path},column=2",
        "tsv": f"tsv:path={path},column=2",
        "csv": f"csv:path={path},column=k.1",
        "parquet": f"parquet:path={path},column=k.1",
    }
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"k.1": words}), path)
    elif kind != "zipf":
        separator, head = (",", "x,k.1\n") if kind == "csv" else ("\t", "")
        path.write_text(head + "".join(f"1{separator}{word}\n" for word in words))
    found = diagnose_stream(specs[kind], 3)
    names = {}
    exec(found.code, names)
    assert names["result"].count() == found.keys


def test_costs_binary_keys_composites_and_expressions(rows):
    costly = diagnose(rows, "user id", WORKERS, cost="cost")
    assert costly.candidates[0].time_over_ideal > costly.candidates[0].max_over_mean
    binary = diagnose(rows, ["bytes", "day"], WORKERS)
    assert binary.keys == 6
    assert binary.hot[0].key in {f"{b}, {d}" for b in ("30", "31") for d in (0, 1, 2)}
    made = diagnose(rows, F.col("day") % 2, WORKERS)
    assert "group(df, key," in made.code


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_costs_may_be_in_any_unit(rows, unit):
    plain = diagnose(rows, "user id", WORKERS, cost="cost")
    huge = diagnose(rows, "user id", WORKERS, cost=F.col("cost") * unit)
    found, expected = ([c.time_over_ideal for c in d.candidates] for d in (huge, plain))
    assert found == pytest.approx(expected)


def test_keys_that_are_no_utf8_are_shown_with_marks_in_their_place(rows):
    text = F.when(F.col("day") == 0, F.lit(b"a\xff").cast("string")).otherwise("b")
    assert {hot.key for hot in diagnose(rows, text, WORKERS).hot} == {"a\ufffd", "b"}
    inside = diagnose(rows, F.struct("day", F.lit(b"\xff").alias("bytes")), WORKERS)
    assert {hot.key for hot in inside.hot} == {f"{{{day}, \ufffd}}" for day in range(3)}


def test_a_key_of_many_columns_is_null_where_all_of_them_are(spark):
    wide = spark.range(60).select(
        F.when(F.col("id") % 3 > 0, F.col("id") % 5).alias("c0"),
        *(F.when(F.col("id") % 2 > 0, F.col("id") % 5).alias(f"c{i}") for i in range(1, 50)),
    )
    names = wide.columns
    assert diagnose(wide, names, WORKERS).nulls == 10
    assert diagnose(wide, names, WORKERS, with_=wide).messages == 20


def test_a_sample_thins_out_alike_in_all_tasks(rows, monkeypatch):
    from skewless.spark.diagnose import sampling

    monkeypatch.setattr(sampling, "LIMIT", 500)  # less than what the first task's level leaves
    batches = rows.select(
        F.xxhash64("user id").alias("identity"), "cost", F.col("user id").alias("name")
    ).toArrow()

    from skewless.diagnose.sample import Thinner

    parts = []
    for task in range(3):
        thinner = Thinner(1000 if task else 300, task)
        for batch in batches.slice(2000 * task, 2000).to_batches():
            identity, cost, name = batch.columns
            thinner.add(identity.to_numpy().view("uint64"), cost.to_numpy(), name)
        parts.append(sampling._packed(task, thinner))
    joined = [b.to_pylist()[0] for b in sampling._join(iter(parts))]
    assert len({row["level"] for row in joined}) == 1
    assert sum(len(row["keys"]) // 8 for row in joined) <= 500
    assert all(len(row["keys"]) == len(row["costs"]) == len(row["bits"]) for row in joined)
    assert all(len(row["keys"]) // 8 > 50 for row in joined)


@pytest.mark.connect
def test_joins_broadcast_stay_or_are_split(spark, rows):
    small = spark.range(5).select(F.col("id").cast("string").alias("user id"))
    assert diagnose(rows, "user id", WORKERS, with_=small).verdict.startswith("Broadcast the small")
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        split = diagnose(rows, "user id", WORKERS, with_=rows.select("user id"))
        assert split.choice == "join"
        assert "join(df, other, 'user id')" in split.code
        assert split.hot[0].key == "hot"  # nulls match nothing
        even = spark.range(2000).select(F.col("id").alias("day"))
        kept = diagnose(even, "day", WORKERS, with_=even)
        assert kept.verdict.startswith("Nothing is skewed")
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        (["`a.b`", "`t``k`"], "-1"),
        ("s.k", "-1"),
        (lambda: [F.upper("`a.b`"), "s.k"], "-1"),
        ("`a.b`", "10MB"),
        (lambda: F.col("s.k"), "10MB"),
    ],
)
def test_the_code_for_a_join_runs_whatever_the_key_is(spark, key, limit):
    hot = F.when(F.col("id") % 4 > 0, "a").otherwise(F.col("id").cast("string"))
    df = spark.range(60).select(
        hot.alias("a.b"), F.struct(hot.alias("k")).alias("s"), hot.alias("t`k"), "id"
    )
    key = key() if callable(key) else key
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", limit)
    try:
        found = diagnose(df, key, WORKERS, with_=df)
        assert ("broadcast" in found.code) == (limit != "-1")
        names = {"df": df, "other": df.select("*"), "key": key}
        exec(found.code, names)
        assert names["result"].count() == 45 * 45 + 15
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


def test_adaptive_execution_is_trusted_with_what_it_can_split():
    import numpy as np

    from skewless.diagnose.join import Side, join_diagnosis
    from skewless.diagnose.sample import Sample
    from skewless.hashing import identities

    keys = identities(np.array([1] * 600 + list(range(2, 402))))
    big = Side(Sample(keys, np.zeros(1000, np.int32), None, 10_000_000, 401), 1000)
    tail = identities(np.arange(1, 402))
    other = Side(Sample(tail, np.zeros(401, np.int32), None, 401, 401), 10**6)
    found = join_diagnosis(big, other, 20, {}, "t", "k", "'k'", -1, adaptive=True)
    assert "adaptive execution handles this" in found.verdict
    off = join_diagnosis(big, other, 20, {}, "t", "k", "'k'", -1, adaptive=False)
    assert off.choice == "join"


def test_several_keys_are_ranked(rows):
    ranked = diagnose_keys(rows, [["user id", "day"], "user id", "day"], WORKERS)
    overs = [d.candidates[0].time_over_ideal for d in ranked.diagnoses]
    assert overs == sorted(overs, reverse=True)
    assert "<table>" in ranked._repr_html_()
    lines = repr(ranked).splitlines()
    assert len(lines) == len(overs)
    assert all(" × ideal by plain hash, hottest " in line for line in lines)


@pytest.mark.connect
def test_two_results_are_equal_whatever_their_order_of_rows_and_columns(rows):
    sums = rows.groupBy("user id").agg(F.sum("cost").alias("s"), F.count("*").alias("n"))
    same = verify(sums, sums.select("n", "user id", "s").orderBy("n"))
    assert same.equal
    assert same.before_rows == 99
    assert "results are equal" in same.verdict
    nearly = sums.withColumn("s", F.col("s") * F.lit(1 + 1e-13))
    assert verify(sums, nearly).equal
    other = sums.withColumn("n", F.when(F.col("user id") == "hot", 1).otherwise(F.col("n")))
    assert not verify(sums, other).equal
    money = rows.sparkSession.range(200).selectExpr("id", "12345678.45d + id * 0.1d as total")
    last_bit = money.selectExpr("id", "total * (1 + 2e-16d) as total")
    assert money.exceptAll(last_bit).count(), "there is nothing to round"
    assert verify(money, last_bit).equal
    assert "rows before and" in verify(sums, sums.limit(3)).verdict
    assert verify(money, money, digits=10**9).equal
    assert not verify(money, last_bit, digits=10**9).equal
    doubled = sums.union(sums.where("n > 0").limit(1))
    assert not verify(sums, doubled).equal


def test_a_null_is_told_from_zero_and_empty_in_a_digest(spark):
    def one(value):
        return spark.createDataFrame([(value,)], "x string")

    assert not verify(one(None), one("")).equal
    numbers = [spark.createDataFrame([(v,)], "x double") for v in (None, 0.0, -0.0)]
    assert not verify(numbers[0], numbers[1]).equal
    assert verify(numbers[1], numbers[2]).equal


@pytest.mark.connect
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("array(1, null)", "array(null, 1)"),
        ("array(1)", "array(1, null)"),
        ("cast(array() as array<int>)", "cast(array(null) as array<int>)"),
        ("array(array(1), array(2))", "array(array(1, 2))"),
        ("array(cast(array() as array<int>))", "array(cast(null as array<int>))"),
        ("named_struct('a.b', 1, 'c', null)", "named_struct('a.b', null, 'c', 1)"),
        ("named_struct('a', named_struct('b', null))", "named_struct('a', null)"),
        ("map(1, null)", "map(1, 0)"),
        ("map(1, array(2))", "map(1, array(2, null))"),
    ],
)
def test_values_inside_others_are_told_apart_in_a_digest(spark, one, other):
    kind = spark.sql(f"select coalesce({one}, {other}) as x").schema["x"].dataType
    rows = [spark.range(1).select(F.expr(text).cast(kind).alias("x")) for text in (one, other)]
    assert verify(rows[0], rows[0]).equal
    assert not verify(*rows).equal


def test_floats_inside_others_and_entries_of_maps_in_any_order_are_equal(spark):
    def rows(text):
        return spark.sql(f"select {text} as x")

    assert verify(rows("array(0.1D + 0.2D)"), rows("array(0.3D)")).equal
    assert verify(rows("map('a', 1, 'b', 2)"), rows("map('b', 2, 'a', 1)")).equal


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ([0.9], [0.1], "both take less than a second, too short to tell which is faster: 0.90 s"),
        ([4.0], [1.0], "it takes 75 % less time: 4.00 s before and 1.00 s after, in one run of ea"),
        ([0.5], [2.0], "it takes 300 % more time"),
        ([4.0, 5.0], [4.5, 3.0], "the times of the 2 runs overlap, so neither is surely faster"),
        ([4.0, 5.0, 9.0], [2.0, 3.0, 2.5], "50 % less time: 5.00 s before and 2.50 s after, in t"),
    ],
)
def test_a_difference_is_claimed_only_where_the_runs_can_tell_it(before, after, says):
    assert says in verdict(True, (before, after), 9, 9)


def raising(df):
    """The same, but that no job on its days can end."""
    return df.withColumn("day", F.raise_error(F.lit("a job ran")).cast("int"))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda df: diagnose(df, "usr id"), "did you mean 'user id'"),
        (lambda df: diagnose(df, "day", 0), "workers must be at least 1"),
        (lambda df: diagnose(raising(df), "day", 10**6), "at most 200,000 workers, not of 1,000,0"),
        (lambda df: diagnose(df, "day", work="sum"), "no kind of work"),
        (lambda df: diagnose(df, "day", cost="bytes"), "give a column of numbers"),
        (lambda df: diagnose(df, "day", cost=5), "a column's name or a Column, not 5"),
        *(
            (
                lambda df, cost=cost: diagnose(df, "day", cost=F.when(F.col("day") > 0, cost)),
                "negative, infinite or not a number: give finite costs",
            )
            for cost in (-1.0, float("inf"), float("-inf"), float("nan"))
        ),
        (lambda df: diagnose(df, "day", cost=F.lit(0)), "The cost of every row is 0 or null"),
        (lambda df: diagnose(df, "day", work="join"), "A join has two sides"),
        (lambda df: diagnose(df, "day", work="fold", with_=df), "A join has two sides"),
        (lambda df: diagnose(df.limit(0), "day"), "has no rows"),
        (lambda df: diagnose(df.select(F.parse_json(F.lit("1")).alias("v")), "v"), "be a key"),
        (lambda df: diagnose(df, "day", work=3), "no kind of work called '3'"),
        (lambda df: diagnose(df, "day", seed="a"), "A seed is a whole number, not 'a'"),
        (lambda df: diagnose(df, "day", with_="x"), "A Spark DataFrame is needed here, not "),
        (lambda df: diagnose(df, "day", cost="cost", with_=df), "leave cost= out beside with_="),
        (lambda df: diagnose(raising(df), "day", with_=df.drop("day")), "no column 'day'"),
        (lambda df: diagnose_keys(df, []), "at least one"),
        (lambda df: diagnose_keys(df, F.col("day")), "at least one"),
        (lambda df: diagnose_keys(df, 5), "at least one"),
        (lambda df: diagnose_keys(raising(df), ["day", "dya"]), "no column 'dya'"),
        (lambda df: diagnose(5, "day"), "A Spark DataFrame is needed here, not "),
        (lambda df: verify(df, df.select("day")), "differ in their columns"),
        (lambda df: verify(df, df, rounds=0), "at least 1 round"),
        (lambda df: verify(df, df, rounds="x"), "rounds is a whole number"),
        (lambda df: verify(*[df.selectExpr("make_interval(1) as i")] * 2), "has no digest"),
    ],
)
def test_a_mistake_is_one_sentence(rows, call, says):
    with pytest.raises(SkewlessError, match=says) as error:
        call(rows)
    assert "\n" not in str(error.value)
