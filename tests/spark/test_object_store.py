"""Checkpoints that are no folder of files: what works on a Hadoop file system, and what is refused.

Hadoop's own viewfs stands for an object store: a scheme that Python cannot open.
"""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from skewless import folds
from skewless.errors import SkewlessError
from skewless.spark import balanced_map, group, per_worker
from tests import sparks
from tests.spark.conftest import ON_CONNECT
from tests.spark.own_folds import Longest
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_again

pytestmark = pytest.mark.skipif(ON_CONNECT, reason="sets Hadoop's own configuration")


@pytest.fixture
def store(spark, tmp_path):
    """The address of a folder in a store of its own, for Hadoop keeps what it opened by name."""
    name = f"store{uuid.uuid4().hex}"
    link = f"fs.viewfs.mounttable.{name}.link./data"
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    (tmp_path / "store").mkdir()
    configuration.set(link, f"file:{tmp_path}/store")
    yield f"viewfs://{name}/data"
    configuration.unset(link)


@pytest.mark.parametrize("fold", [folds.count(), Longest()], ids=["Spark's state", "our own state"])
def test_counts_go_on_exactly_from_a_checkpoint_in_a_store(spark, tmp_path, store, fold):
    files = Files(spark, tmp_path / "in", "k string, s string")
    totals, counted = {}, Counter()
    for number in range(2):
        keys = [f"k{i % (3 + number)}" for i in range(200)]
        counted.update(keys)
        files.put([(key, "x") for key in keys])
        counts = group(files.stream(), "k", "partial", 3).fold(folds.count(), fold.alias("other"))
        rows = run_again(counts, f"{store}/checkpoint")
        totals.update((row["k"], row["count"]) for row in rows)
    assert totals == counted
    assert (tmp_path / "store" / "checkpoint" / "commits" / "1").exists()


def test_a_plan_folder_in_a_store_is_one_sentence(spark, tmp_path, store):
    rows = Files(spark, tmp_path / "in", "w string").stream()
    where = f"{store}/checkpoint"
    given = {"workers": 3, "checkpoint": where}
    all_refused = [
        lambda: group(rows, "w", "d-choices", **given),
        lambda: balanced_map(rows, lambda b: b, "w string", key="w", **given),
        lambda: per_worker(
            rows, "w", "partial", processor=CountPerKey(), schema=CountPerKey.SCHEMA, **given
        ),
    ]
    for refused in all_refused if sparks.SPARK >= (4, 0) else all_refused[:1]:
        with pytest.raises(SkewlessError, match="give a mounted folder that they share"):
            refused()
