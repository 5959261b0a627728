"""Streams that go on over one checkpoint with something changed: exact, or one sentence.

An ordinary run takes a few cases, always the same; `make fuzz MINUTES=n` draws new ones.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pyspark.sql import functions as F

from skewless import folds
from skewless.spark import group
from tests import sparks
from tests.spark.drawing import MINUTES, differences
from tests.spark.fuzz import canonical
from tests.spark.own_folds import Longest, Rows
from tests.spark.streams import Files, run_again

FOLDS = {
    "count": (folds.count, lambda: F.count(F.lit(1))),
    "count x": (lambda: folds.count("x"), lambda: F.count("x")),
    "sum x": (lambda: folds.sum("x"), lambda: F.sum("x")),
    "mean x": (lambda: folds.mean("x"), lambda: F.avg("x")),
    "min x": (lambda: folds.min("x"), lambda: F.min("x")),
    "max x": (lambda: folds.max("x"), lambda: F.max("x")),
    "max s": (lambda: folds.max("s"), lambda: F.max("s")),
    "rows": (lambda: Rows("x"), lambda: F.count(F.lit(1))),
    "rows of s": (lambda: Rows("s"), lambda: F.count(F.lit(1))),
    "longest": (Longest, lambda: F.max(F.length("s")).cast("long")),
}
IN_PYTHON = ("rows", "rows of s", "longest")
CASES = 8
LEAST_RUN_ON = 3
SCHEMES = ("key", "shuffle", "partial")
if sparks.SCHEME_OF_STREAMS == "key":  # an older Spark's streams take no scheme that counts
    SCHEMES = ("key",)
ROUTED = ("scheme", "workers", "seed")
KINDS = ("int", "long", "double", "decimal(10,2)")
# What Spark says by itself of state that another query left.
SPARKS_OWN = ("state schema", "StateSchema", "STATE_STORE", "STATEFUL_OPERATOR", "STREAMING_STATE")


@dataclass(frozen=True)
class Stream:
    """What a stream computes, and how."""

    kind: str  # of x
    key: str
    folded: tuple[str, ...]
    scheme: str
    workers: int
    seed: int
    checkpoint: bool  # whether it is named to us too


@st.composite
def restarts(draw: Any) -> tuple[Stream, Stream]:
    chosen = st.lists(st.sampled_from(sorted(FOLDS)), min_size=1, max_size=3, unique=True)
    stream = st.builds(
        Stream,
        kind=st.sampled_from(KINDS),
        key=st.sampled_from(("k", "s", "x")),
        folded=chosen.map(tuple),
        scheme=st.sampled_from(SCHEMES),
        workers=st.integers(2, 3),
        seed=st.integers(0, 1),
        checkpoint=st.booleans(),
    )
    first, other = draw(stream), draw(stream)
    if not set(first.folded) & set(IN_PYTHON):  # Spark's own state can say nothing of itself
        first = replace(first, checkpoint=True)
    # A change of what is computed is mostly refused: half the restarts shall run on.
    where = ROUTED if draw(st.booleans()) else (*ROUTED, "kind", "key", "folded")
    names = draw(st.lists(st.sampled_from(where), min_size=1))
    changed = {name: getattr(other, name) for name in names}
    return first, replace(first, **changed)


def run(spark: Any, folder: Path, stream: Stream, number: int) -> list[Any]:
    """One more batch of rows, folded into what is there; the rows that changed."""
    files = Files(spark, folder / f"new{number}", f"k string, x {stream.kind}, s string")
    random_rows = random.Random(number)
    whole = {"int": int, "long": int, "double": float}.get(stream.kind, int)
    values = [None, 1, 2, 300]
    rows = [
        (random_rows.choice("ab"), random_rows.choice(values), random_rows.choice(["", "xy", None]))
        for _ in range(20)
    ]
    files.put([(k, None if x is None else whole(x), s) for k, x, s in rows])
    (folder / "in").mkdir(exist_ok=True)
    for file in files.folder.glob("*.parquet"):
        file.rename(folder / "in" / f"{number}.parquet")
    files.folder = folder / "in"
    checkpoint = str(folder / "checkpoint")
    grouping = group(
        files.stream(),
        stream.key,
        stream.scheme,
        stream.workers,
        seed=stream.seed,
        checkpoint=checkpoint if stream.checkpoint else None,
    )
    made = [FOLDS[name][0]().alias(f"r{i}") for i, name in enumerate(stream.folded)]
    return run_again(grouping.fold(*made), checkpoint)


def difference(spark: Any, first: Stream, then: Stream, ran_on: list[Stream]) -> str | None:
    """What is wrong after a restart, or None; notes those that were not refused."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(spark, folder, first, 0)
        try:
            changed = run(spark, folder, then, 1)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if "SkewlessError" in said or any(own in said for own in SPARKS_OWN):
                return None
            return f"raised {said[-1500:]}"
        parts = [
            spark.read.parquet(str(folder / "in" / f"{n}.parquet")).withColumn(
                "x", F.col("x").cast(then.kind)
            )
            for n in range(2)
        ]
        aggregates = [FOLDS[n][1]().alias(f"r{i}") for i, n in enumerate(then.folded)]
        plain = parts[0].union(parts[1]).groupBy(then.key).agg(*aggregates).collect()
        new = parts[1].select(then.key).distinct().collect()
    touched = {repr(canonical(row[0])) for row in new}
    expected = shown(row for row in plain if repr(canonical(row[0])) in touched)
    found = shown(changed)
    ran_on.append(then)
    return None if found == expected else f"gives {found}, and should give {expected}"


def shown(rows: Iterable[Any]) -> list[str]:
    return sorted(repr(canonical(list(row))) for row in rows)


@pytest.mark.timeout(60 * MINUTES + 3600)
def test_a_restart_is_exact_or_one_sentence(spark):
    ran_on: list[Stream] = []
    found = differences(restarts(), lambda pair: difference(spark, *pair, ran_on), CASES, threads=3)
    assert not found, "\n\n".join(found)
    assert len(ran_on) >= LEAST_RUN_ON, "else nothing was proved"
