"""The decision tree on Spark: batches, streams, and how many histograms workers hold."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skewless.apps import DecisionTree
from skewless.apps.decision_tree.fold import HistogramFold
from skewless.apps.decision_tree.grow import grouped, messages
from skewless.apps.decision_tree.tree import Tree
from skewless.errors import SkewlessError
from skewless.report.plots import save_tree
from tests.spark.streams import Files

FEATURES = ("a", "b", "c", "d")
DDL = "label string, a double, b double, c double, d double"


def iris():
    x, y = load_iris(return_X_y=True)
    rows = [(f"c{label}", *map(float, row)) for label, row in zip(y, x, strict=True)]
    return rows, x, y


@pytest.mark.parametrize("scheme", ["key", "partial"])
def test_a_tree_of_exact_histograms_is_scikit_learns(spark, scheme):
    rows, x, y = iris()
    df = spark.createDataFrame(rows, DDL)
    model = DecisionTree("label", FEATURES, depth=2).fit(df, scheme, 4)
    theirs = DecisionTreeClassifier(max_depth=2, random_state=0).fit(x, y)
    found = df.select("*", model.prediction()).collect()
    assert [row["prediction"] for row in found] == [f"c{label}" for label in theirs.predict(x)]
    assert "c0 (50 of 50)" in model.text()


def test_a_histogram_lives_on_two_workers_with_partial_and_on_all_with_shuffle(spark):
    values = (f"rand({i}) as {name}" for i, name in enumerate(FEATURES))
    label = "case when id % 10 < 8 then 'x' else 'y' end as label"
    rows = spark.range(0, 4000, 1, 2).selectExpr(label, *values)
    workers, histograms = 8, len(FEATURES) * 2 + 2  # D·C·L with one leaf, and the rows of a class
    held = {}
    for scheme in ("key", "partial", "shuffle"):
        new = messages(rows, "label", FEATURES, Tree(), [0])
        grouping = grouped(new, scheme, workers, 0)
        held[scheme] = grouping.partials(grouping.bind(HistogramFold("x", 8))).count()
    assert held["key"] == histograms
    assert histograms < held["partial"] <= 2 * histograms
    assert held["shuffle"] == workers * histograms


def test_a_tree_grows_on_a_stream_and_a_batch_that_runs_again_counts_once(spark, tmp_path):
    random = np.random.default_rng(0)
    files = Files(spark, tmp_path / "in", DDL)
    for _ in range(4):
        x = random.normal(size=(600, 4))
        y = np.where(x[:, 1] > 0.3, "p", np.where(x[:, 3] > 0, "q", "r"))
        files.put([(str(label), *map(float, row)) for label, row in zip(y, x, strict=True)])
    learner = DecisionTree("label", FEATURES, depth=3).learner(
        str(tmp_path / "tree"), workers=3, grace=300
    )
    assert learner.model() is None
    writer = files.stream().writeStream.foreachBatch(learner)
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start().awaitTermination()
    first, *others = learner.history()
    assert (first["tested"], others[-1]["tested"]) == (0, 600)
    assert others[-1]["right"] > 560
    text = learner.model().text()
    learner(files.batch(), 3)
    assert learner.model().text() == text
    save_tree(learner.model().nodes(), "a tree", tmp_path / "tree.png")
    assert (tmp_path / "tree.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("ticks", ["", "`"])
def test_columns_may_have_dots_in_their_names(spark, ticks):
    rows = [("p", 1.0), ("q", 5.0)] * 10
    df = spark.createDataFrame(rows, "label string, x double").toDF("the.label", "a.b")
    wanted = DecisionTree(f"{ticks}the.label{ticks}", [f"{ticks}a.b{ticks}"])
    model = wanted.fit(df, workers=2)
    assert model.features == ("a.b",)
    found = df.select("`the.label`", model.prediction()).collect()
    assert all(row["the.label"] == row["prediction"] for row in found)


def test_a_model_shows_what_it_is_of_on_one_line(spark):
    df = spark.createDataFrame([("p", 1.0), ("q", 2.0)], "label string, a double")
    model = DecisionTree("label", ["a"], depth=1).fit(df, workers=2)
    assert repr(model) == "DecisionTreeModel(2 leaves for 2 classes by a)"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda df: DecisionTree("label", ["a"], depth=0), "depth must be at least 1"),
        (lambda df: DecisionTree("label", ["a"], criterion="mse"), "mse"),
        (lambda df: DecisionTree("label", ["label"]), "label is not one of them"),
        (lambda df: DecisionTree("a", ["label"]).fit(df), "does not name classes"),
        (lambda df: DecisionTree("s", ["label"]).fit(df), "'label' of type string does not suit"),
        (lambda df: DecisionTree("label", ["n.a"]).fit(df), "'n.a' is not a column but a part of"),
        (lambda df: DecisionTree("label", ["a"]).fit(df.where("false")), "no row has a label"),
        (lambda df: DecisionTree("label", ["a"]).learner("x", grace=1), "grace must be"),
        (lambda df: DecisionTree("label", ["a"]).fit("rows"), "A Spark DataFrame is needed"),
        (lambda df: DecisionTree("label", ["a"]).learner(" "), "keeps what it knows in a folder"),
    ],
)
def test_a_mistake_is_one_sentence(spark, call, sentence):
    df = spark.createDataFrame([("p", 1.0)], "label string, a double").withColumn("s", F.lit("x"))
    df = df.withColumn("n", F.struct("a"))
    with pytest.raises(SkewlessError, match=sentence) as error:
        call(df)
    assert "\n" not in str(error.value)


def test_nulls_and_numbers_without_end_are_no_values(spark):
    rows = [
        ("p", 1.0),
        ("p", None),
        ("q", 5.0),
        ("q", float("nan")),
        ("q", float("inf")),
        (None, 3.0),
    ]
    df = spark.createDataFrame(rows, "label string, a double")
    model = DecisionTree("label", ["a"], depth=2).fit(df, workers=2)
    assert model.text().splitlines()[0].startswith("a ≤ 3")
    given = spark.createDataFrame([(1.0,), (9.0,), (None,)], "a double")
    first, second, _ = (row[0] for row in given.select(model.prediction()).collect())
    assert (first, second) == ("p", "q")
