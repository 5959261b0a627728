"""A plan is an object: shown, kept in a file, and handed over in place of a scheme."""

from contextlib import suppress
from pathlib import PurePath

import numpy as np
import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.schemes import SCHEMES, scheme_of
from skewless.spark import Plan, group, learn, repartition, route

LEARNED = [name for name, kind in SCHEMES.items() if kind.plans_keys]


@pytest.fixture(scope="module")
def rows(spark):
    hot = F.when(F.col("id") % 3 == 0, F.lit("<b>hot</b>")).otherwise(F.col("id").cast("string"))
    return spark.range(0, 3000, 1, 2).select(hot.alias("w"), "id")


def counts(df):
    return sorted(map(tuple, df.collect()))


@pytest.mark.parametrize("name", LEARNED)
def test_a_plan_routes_alike_after_it_was_saved_and_stands_for_its_scheme(rows, tmp_path, name):
    plan = learn(rows, "w", name, 6, sample=1, seed=2)
    plan.save(tmp_path / "plan")
    again = Plan.load(tmp_path / "plan")
    assert repr(again) == repr(plan)
    assert again == plan
    assert len({again, plan}) == 1
    assert plan != learn(rows, "w", name, 6, sample=1, seed=3)
    assert (again.scheme, again.workers, again.seed) == (scheme_of(name), 6, 2)
    routes = [counts(route(rows, "w", p, salt="id").select("id", "worker")) for p in (plan, again)]
    assert routes[0] == routes[1]
    assert max(worker for _, worker in routes[0]) == 5
    placed = repartition(rows, "w", again, salt="id", column="to")
    places = placed.select("to", F.spark_partition_id()).distinct().collect()
    assert all(to == place for to, place in places)
    assert {to for to, _ in places} == set(range(6))
    counted = group(rows, "w", again, salt="id").fold(folds.count())
    assert counts(counted) == counts(rows.groupBy("w").count())


def test_a_plan_says_what_it_is(rows):
    plan = learn(rows, "w", "distribution-aware:theta=0.05", 4, sample=1)
    assert repr(plan) == (
        "Plan(distribution-aware:theta=0.05, 4 workers, 1 hot key, learned from 3,000 rows "
        "by w string)"
    )
    named = learn(rows.withColumnRenamed("w", "<i>"), "<i>", "d-choices", 4)
    assert "&lt;i&gt; string" in named._repr_html_()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"workers": 5}, "The plan's number of workers is 4, not 5"),
        ({"seed": 5}, "The plan's seed is 2, not 5"),
        ({"plan": None}, None),
    ],
)
def test_what_a_plan_says_may_be_repeated_but_not_contradicted(rows, asked, sentence):
    plan = learn(rows, "w", "d-choices", 4, seed=2)
    if sentence is None:
        assert route(rows, "w", plan, 4, seed=2, **asked).count() == 3000
        return
    with pytest.raises(SkewlessError, match=sentence):
        route(rows, "w", plan, **asked)


def test_a_plan_of_the_same_scheme_with_another_parameter_is_refused(rows):
    plan = learn(rows, "w", "d-choices:theta=0.1", 4)
    with pytest.raises(SkewlessError, match=r"scheme is d-choices:theta=0\.1, not d-choices"):
        group(rows, "w", "d-choices", plan=plan)
    with pytest.raises(SkewlessError, match="given twice"):
        group(rows, "w", plan, plan=plan)


def test_bare_arrays_still_work_for_one_release(rows):
    with pytest.warns(DeprecationWarning, match="A plan is an object now"):
        routed = route(rows, "w", "partial", 4, plan=scheme_of("partial").plan(4, 0))
    assert routed.count() == 3000


def test_a_file_may_be_named_by_any_kind_of_path(rows, tmp_path):
    plan, file = learn(rows, "w", "d-choices", 4), PurePath(tmp_path / "plan")
    plan.save(file)
    assert Plan.load(file).scheme == plan.scheme


def test_a_damaged_or_foreign_file_is_one_sentence(rows, tmp_path):
    plan = learn(rows, "w", "d-choices", 4)
    file = tmp_path / "plan"
    plan.save(file)
    whole = file.read_bytes()
    random = np.random.default_rng(1)
    for cut in random.integers(1, len(whole), 30).tolist():
        file.write_bytes(whole[:cut])
        with pytest.raises(SkewlessError, match="is damaged: learn it again"):
            Plan.load(file)
    for bit in random.integers(0, 8 * len(whole), 200).tolist():
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(flipped))
        with suppress(SkewlessError):  # a flip in a time stamp or the like changes nothing
            assert Plan.load(file).workers == 4
    with pytest.raises(SkewlessError, match="cannot be read: No such file"):
        Plan.load(tmp_path / "none")
    for nothing in (None, 3):
        with pytest.raises(SkewlessError, match="A plan is kept in a file"):
            Plan.load(nothing)
        with pytest.raises(SkewlessError, match="A plan is kept in a file"):
            plan.save(nothing)
    with pytest.raises(SkewlessError, match="cannot be written to"):
        plan.save(tmp_path / "none" / "plan")
