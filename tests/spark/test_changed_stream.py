"""A stream that goes on with something changed: exact, or one sentence that names the change."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from skewless import folds
from skewless.errors import SkewlessError
from skewless.folds.api import Fold
from skewless.spark import group
from skewless.spark.adapt.facts import StateFacts
from tests.spark.own_folds import Longest
from tests.spark.streams import Files, run_again

DDL = "k string, x long, y long, s string"


def put(spark, folder, ddl, start):
    files = Files(spark, folder, ddl)
    kinds = [field.split()[1] for field in ddl.split(", ")]
    makers = {"string": str, "long": int, "double": float, "int": int}
    rows = [[makers[kind](start + n) for kind in kinds] for n in range(4)]
    files.put([(str(n % 2), *row[1:]) for n, row in enumerate(rows)])
    return files


# What the stream folds and by which key: first, and after a restart.
CHANGES = {
    "type of a column": (
        (DDL, "k", [folds.min("x"), Longest()]),
        (DDL.replace("x long", "x double"), "k", [folds.min("x"), Longest()]),
        r"Min\(x bigint\).* now they are Min\(x double\)",
    ),
    "kind of fold": (
        (DDL, "k", [folds.min("x").alias("m"), Longest()]),
        (DDL, "k", [folds.max("x").alias("m"), Longest()]),
        r"Min\(x bigint\).* now they are Max\(x bigint\)",
    ),
    "parameter and key": (
        (DDL, "k", [folds.top_k("y", 2)]),
        (DDL, "concat('key', s)", [folds.top_k("y", 3)]),
        r"the key k string, but now it is key string, and with .*k=2\), but now they are .*k=3\)",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_state_of_other_folds_or_another_key_is_refused(spark, tmp_path, change):
    first, then, says = CHANGES[change]
    for number, (ddl, key, chosen) in enumerate((first, then)):
        files = put(spark, tmp_path / f"in{number}", ddl, number)
        if number:  # the same source, so that Spark takes the checkpoint
            for file in (tmp_path / "in1").iterdir():
                file.rename(tmp_path / "in0" / "00001.parquet")
            files.folder = tmp_path / "in0"
        by = F.expr(key).alias(key if key.isidentifier() else "key")
        stream = group(files.stream(), by, "shuffle", 2).fold(*chosen)
        if not number:
            run_again(stream, tmp_path / "checkpoint")
            continue
        with pytest.raises(Exception, match=f"SkewlessError: The state of this stream .*{says}"):
            run_again(stream, tmp_path / "checkpoint")


def test_another_name_for_a_result_or_another_scheme_changes_no_state(spark, tmp_path):
    files = put(spark, tmp_path / "in", DDL, 0)
    first = group(files.stream(), "k", "shuffle", 2).fold(folds.count(), Longest())
    run_again(first, tmp_path / "checkpoint")
    files.put([("0", 1, 1, "long")])
    slow = folds.sleeping(folds.count(), 0.01).alias("n")
    then = group(files.stream(), "k", "partial", 3).fold(slow, Longest().alias("l"))
    seen = run_again(then, tmp_path / "checkpoint")
    assert [tuple(row) for row in seen] == [("0", 3, 4)]


def test_a_checkpoint_that_is_given_refuses_before_the_stream_starts(spark, tmp_path):
    files, checkpoint = put(spark, tmp_path / "in", DDL, 0), str(tmp_path / "checkpoint")

    def grouped(key="k"):
        return group(files.stream(), key, "shuffle", 2, checkpoint=checkpoint)

    grouped().fold(folds.max("x"))  # was never started, and binds nobody
    run_again(grouped().fold(folds.count(), folds.min("x")), checkpoint)
    run_again(grouped().fold(folds.count().alias("n"), folds.min("x")), checkpoint)
    with pytest.raises(SkewlessError, match=r"was written with the folds Count.*now they are"):
        grouped().fold(folds.count("x"), folds.min("x"))
    with pytest.raises(SkewlessError, match=r"with the key k string, but now it is y bigint"):
        grouped("y").fold(folds.count(), folds.min("x"))


class Share(Longest):
    limit = 3

    def __init__(self, share):
        self.share = share
        self.model = object()


@pytest.mark.parametrize(
    ("fold", "says"),
    [
        (folds.count(), "Count()"),
        (folds.sleeping(folds.min("x"), 2), "Min(x bigint)"),
        (folds.top_k("x", 2), "TopK(x bigint, counters=128, k=2)"),
        (Share(0.5), "Share(s bigint, limit=3, share=0.5)"),
    ],
)
def test_what_makes_a_state_is_said_in_words(fold: Fold, says):
    assert fold.describe(["bigint"] * len(fold.columns)) == says


def test_a_state_says_what_it_holds():
    facts = StateFacts(("k string",), ("Count()",))
    held = facts.sealed(b"state")
    assert facts.opened(held) == b"state"
    assert len(held) < 64
    for other in (b"state", b"", b"skewless"):
        with pytest.raises(SkewlessError, match="was not written by this version"):
            facts.opened(other)
