"""Naive Bayes on Spark, against scikit-learn on the same rows."""

from __future__ import annotations

import math
from pathlib import PurePath

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

from skewless.apps import NaiveBayes
from skewless.errors import SkewlessError
from tests.spark.streams import Files

WITHIN = {"rtol": 1e-9, "atol": 1e-9}


def names(count, seed=0):
    """Skewed categories that depend on the class: (label, a, b)."""
    random = np.random.default_rng(seed)
    labels = random.choice(["x", "y", "z"], count, p=[0.7, 0.2, 0.1])
    shift = np.array([{"x": 0, "y": 2, "z": 3}[label] for label in labels])
    a = (random.zipf(1.6, count) + shift) % 9
    b = (random.zipf(2.5, count) * (1 + shift)) % 5
    return [(str(label), f"a{i}", int(j)) for label, i, j in zip(labels, a, b, strict=True)]


def codes(column):
    values = sorted(set(column), key=str)
    return np.array([values.index(value) for value in column])


@pytest.mark.parametrize("scheme", ["key", "partial", "graded", "shuffle"])
def test_categorical_equals_scikit_learn(spark, scheme):
    rows = names(3000)
    df = spark.createDataFrame(rows, "label string, a string, b long")
    model = NaiveBayes("label", ["a", "b"], alpha=0.5).fit(df, scheme, 4)
    labels, a, b = zip(*rows, strict=True)
    x = np.column_stack([codes(a), codes(b)])
    theirs = CategoricalNB(alpha=0.5).fit(x, labels)
    assert model.classes.to_pylist() == theirs.classes_.tolist()
    np.testing.assert_array_equal(model.class_counts, theirs.class_count_)
    for mine, other in zip(model.counts, theirs.category_count_, strict=True):
        np.testing.assert_array_equal(mine, other)
    for mine, other in zip(model.log_probabilities, theirs.feature_log_prob_, strict=True):
        np.testing.assert_allclose(mine, other, **WITHIN)
    given = pa.array([[i, str(j)] for i, j in zip(a, b, strict=True)])
    np.testing.assert_allclose(model.log_joint(given), theirs.predict_joint_log_proba(x), **WITHIN)
    found = df.select("*", model.prediction()).collect()
    assert [row["prediction"] for row in found] == theirs.predict(x).tolist()
    assert set(theirs.predict(x)) == {"x", "y", "z"}


def test_multinomial_of_columns_equals_scikit_learn(spark):
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 800)
    x = random.poisson(np.array([[5, 1, 0.5, 2], [1, 6, 2, 0.1], [2, 2, 2, 2]])[labels])
    rows = [(int(label), *map(int, r)) for label, r in zip(labels, x, strict=True)]
    df = spark.createDataFrame(rows, "label int, a long, b long, c int, d int")
    model = NaiveBayes("label", ["a", "b", "c", "d"], "multinomial").fit(df, workers=4)
    theirs = MultinomialNB().fit(x, labels)
    np.testing.assert_allclose(model.counts[0], theirs.feature_count_, **WITHIN)
    np.testing.assert_allclose(model.log_probabilities[0], theirs.feature_log_prob_, **WITHIN)
    found = df.select(model.prediction()).collect()
    assert [row[0] for row in found] == theirs.predict(x).tolist()


def test_multinomial_of_words_equals_scikit_learn(spark):
    random = np.random.default_rng(2)
    texts = [
        " ".join(f"w{i}" for i in random.zipf(1.5, 12) % (20 + 9 * (n % 2))) for n in range(400)
    ]
    rows = [(bool(n % 2), text.split()) for n, text in enumerate(texts)]
    df = spark.createDataFrame(rows, "spam boolean, words array<string>")
    model = NaiveBayes("spam", ["words"], "words").fit(df, workers=4)
    counter = CountVectorizer(token_pattern=r"\S+")
    x = counter.fit_transform(texts)
    theirs = MultinomialNB().fit(x, [spam for spam, _ in rows])
    assert model.values[0].to_pylist() == counter.get_feature_names_out().tolist()
    np.testing.assert_allclose(model.log_probabilities[0], theirs.feature_log_prob_, **WITHIN)
    mine = model.log_joint(pa.array([words for _, words in rows]))
    np.testing.assert_allclose(mine, theirs.predict_joint_log_proba(x), **WITHIN)
    unknown = spark.createDataFrame([(["never"],), ([],), (None,)], "words array<string>")
    assert {row[0] for row in unknown.select(model.prediction()).collect()} == {False}
    for without_a_type in (pa.array([[], []]), pa.array([None, None])):
        np.testing.assert_allclose(model.log_joint(without_a_type), [model.log_priors] * 2)


def test_gaussian_equals_scikit_learn_far_from_zero_too(spark):
    random = np.random.default_rng(3)
    labels = random.integers(0, 3, 900)
    x = random.normal(labels[:, None] * [1.0, -0.5], [1.0, 0.3]) + np.array([0, 1e6])
    rows = [(int(label), float(a), float(b)) for label, (a, b) in zip(labels, x, strict=True)]
    df = spark.createDataFrame(rows, "label int, a double, b double")
    model = NaiveBayes("label", ["a", "b"], "gaussian").fit(df, workers=4)
    theirs = GaussianNB().fit(x, labels)
    np.testing.assert_allclose(model.means, theirs.theta_, **WITHIN)
    np.testing.assert_allclose(model.variances, theirs.var_, **WITHIN)
    mine = model.log_joint(pa.array(x.tolist()))
    np.testing.assert_allclose(mine, theirs.predict_joint_log_proba(x), **WITHIN)
    found = df.select(model.prediction()).collect()
    assert [row[0] for row in found] == theirs.predict(x).tolist()


def test_nulls_and_numbers_without_end_say_nothing_of_their_feature(spark):
    rows = [(0, 1.0, 5.0), (0, 3.0, None), (1, math.nan, 7.0), (1, math.inf, 9.0), (None, 1.0, 1.0)]
    df = spark.createDataFrame(rows, "label int, a double, b double")
    model = NaiveBayes("label", ["a", "b"], "gaussian").fit(df, workers=2)
    assert model.class_counts.tolist() == [2, 2]
    assert model.means.tolist() == [[2.0, 5.0], [2.0, 8.0]]  # class 1 has no a: that of all
    given = spark.createDataFrame(
        [(math.nan, 8.0), (None, 5.0), (None, None)], "a double, b double"
    )
    assert [row[0] for row in given.select(model.prediction()).collect()] == [1, 0, 0]


def test_unseen_values_have_a_probability_and_one_class_is_always_predicted(spark):
    df = spark.createDataFrame([("x", "p"), ("x", "q"), ("x", None)], "label string, a string")
    model = NaiveBayes("label", "a").fit(df, workers=2)
    assert model.unseen[0].tolist() == pytest.approx([math.log(1 / 4)])
    given = spark.createDataFrame([("new",), (None,)], "a string").select(model.prediction())
    assert [row[0] for row in given.collect()] == ["x", "x"]


def test_a_model_is_a_dataframe_too(spark):
    df = spark.createDataFrame(names(200), "label string, a string, b long")
    model = NaiveBayes("label", ["a", "b"]).fit(df, workers=2)
    frame = model.frame(spark)
    priors = frame.where("feature is null").select(F.sum(F.exp("log_probability"))).first()[0]
    assert priors == pytest.approx(1)
    sums = frame.where("feature = 'a'").groupBy("label").agg(F.sum(F.exp("log_probability")))
    assert [row[1] for row in sums.collect()] == pytest.approx([1, 1, 1])


def test_a_stream_is_tested_before_it_is_learned_and_a_restart_counts_no_batch_twice(
    spark, tmp_path
):
    files = Files(spark, tmp_path / "in", "label string, a string, b long")
    rows = names(1500)
    for part in range(3):
        files.put(rows[part * 500 : (part + 1) * 500])
    bayes = NaiveBayes("label", ["a", "b"])
    learner = bayes.learner(str(tmp_path / "model"), workers=3)
    assert learner.model() is None
    assert learner.accuracy() is None
    writer = files.stream().writeStream.foreachBatch(learner)
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert [record["tested"] for record in learner.history()] == [0, 500, 500]
    learner(files.batch(), 2)  # the driver died before the batch was committed: it runs again
    whole = bayes.fit(files.batch(), workers=3)
    np.testing.assert_array_equal(learner.model().class_counts, whole.class_counts)
    for mine, other in zip(learner.model().counts, whole.counts, strict=True):
        np.testing.assert_array_equal(mine, other)
    first = bayes.fit(spark.createDataFrame(rows[:500], files.ddl), workers=3)
    second = spark.createDataFrame(rows[500:1000], files.ddl).select("label", first.prediction())
    assert learner.history()[1]["right"] == second.where("label = prediction").count()
    with pytest.raises(SkewlessError, match="learned from batch 2, and this stream is at batch 0"):
        learner(files.batch(), 0)
    with pytest.raises(SkewlessError, match="another model"):
        NaiveBayes("label", ["a"]).learner(str(tmp_path / "model")).model()


@pytest.mark.parametrize("ticks", ["", "`"])
def test_columns_may_have_dots_in_their_names(spark, ticks):
    rows = [("p", 1.0), ("q", 5.0)] * 10
    df = spark.createDataFrame(rows, "label string, x double").toDF("the.label", "a.b")
    wanted = NaiveBayes(f"{ticks}the.label{ticks}", [f"{ticks}a.b{ticks}"], kind="gaussian")
    model = wanted.fit(df, workers=2)
    assert model.features == ("a.b",)
    found = df.select("`the.label`", model.prediction()).collect()
    assert all(row["the.label"] == row["prediction"] for row in found)


def test_a_model_shows_what_it_is_of_on_one_line(spark):
    df = spark.createDataFrame([("c", "v"), ("d", "v"), ("d", "w")], "l string, a string")
    shown = "NaiveBayesModel(categorical: 2 classes by a, learned from 3 rows)"
    assert repr(NaiveBayes("l", ["a"]).fit(df, workers=2)) == shown


def test_the_folder_of_a_learner_may_be_named_by_any_kind_of_path(tmp_path):
    assert NaiveBayes("l", ["a"]).learner(PurePath(tmp_path)).model() is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda df: NaiveBayes("l", ["a"], "bernoulli"), "bernoulli"),
        (lambda df: NaiveBayes(5, ["a"]), "label is the name of a column, not 5"),
        (lambda df: NaiveBayes("l", 5), "one or more names"),
        (lambda df: NaiveBayes("l", ["m.key"]).fit(df), "'m.key' is not a column but a part"),
        (lambda df: NaiveBayes("l", ["s.x"]).fit(df), "feature 's.x' is not a column but a part"),
        (lambda df: NaiveBayes("s.x", ["a"]).fit(df), "label 's.x' is not a column but a part"),
        (lambda df: NaiveBayes("l", ["s.nope"]).fit(df), "no column 's.nope'"),
        (lambda df: NaiveBayes("l", []), "one or more names"),
        (lambda df: NaiveBayes("l", ["l"]), "label is not one of them"),
        (lambda df: NaiveBayes("l", ["a"], alpha=0), "alpha is a number above 0"),
        (lambda df: NaiveBayes("x", ["a"]).fit(df), "does not name classes"),
        (lambda df: NaiveBayes("l", ["x"]).fit(df), "'x' of type double does not suit"),
        (lambda df: NaiveBayes("l", ["m"], "gaussian").fit(df), "'m' of type map"),
        (lambda df: NaiveBayes("l", ["t", "x"], "words").fit(df), "one column of arrays"),
        (lambda df: NaiveBayes("l", ["x"], "multinomial").fit(df), "'x' has counts below 0"),
        (lambda df: NaiveBayes("l", ["nope"]).fit(df), "nope"),
        (lambda df: NaiveBayes("l", ["a"]).fit(df.where("false")), "no row has a label"),
        (lambda df: NaiveBayes("l", ["a"]).fit(None), "A Spark DataFrame is needed here, not "),
        (lambda df: NaiveBayes("l", ["a"]).learner(None), "keeps what it knows in a folder"),
        (lambda df: NaiveBayes("l", ["a"]).learner(__file__), "is a file: give a learner a folder"),
    ],
)
def test_a_mistake_is_one_sentence(spark, call, sentence):
    ddl = "l string, a string, x double, m map<string, int>, t array<string>, s struct<x: string>"
    df = spark.createDataFrame([("c", "v", -1.0, {}, [], ("z",))], ddl)
    with pytest.raises(SkewlessError, match=sentence) as error:
        call(df)
    assert "\n" not in str(error.value)
