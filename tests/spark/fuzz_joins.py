"""Random joins with hot keys, each as Spark does it and as ours does it."""

from __future__ import annotations

import logging
import random
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.spark import JoinPlan, join, learn_join
from tests.spark.fuzz import VALUES, outcome, quoted, session

KEYS = [kind for kind in VALUES if "map" not in kind and kind != "variant"]
TWO_KINDS = (
    ("int", "bigint"),
    ("tinyint", "smallint"),
    ("int", "decimal(5,2)"),
    ("bigint", "double"),
    ("bigint", "float"),
    ("float", "double"),
    ("decimal(5,2)", "decimal(30,10)"),
    ("decimal(38,2)", "decimal(38,0)"),
    ("decimal(30,10)", "bigint"),
    ("decimal(20,0)", "float"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
    ("string", "int"),
    ("string", "binary"),
    ("interval day", "interval day to second"),
    ("void", "int"),
)
NAMES = ("k", "K", "slot", "key", "a.b", "t`k", "é ß", "__skewless_slot", "identity", "x y", "n")
HOWS = (
    "inner",
    "cross",
    "left",
    "LEFT_OUTER",
    "right",
    "rightouter",
    "full",
    "outer",
    "Full_Outer",
)
HOWS += ("semi", "left_semi", "leftanti", "anti", "leftouter", "fullouter")
SETTINGS = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.caseSensitive": ("false", "false", "true"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1",),
    "spark.sql.join.preferSortMergeJoin": ("true", "false"),
}
MOSTLY_ROWS = (*10 * [60], 1, 0)
# What Spark joins and ours does not, in a sentence.
REFUSALS = ("repeat themselves", "several columns", "cannot be a key")


@dataclass(frozen=True)
class Table:
    """A side: its key columns, then a number, then other columns."""

    columns: tuple[tuple[str, str], ...]
    keys: int
    count: int
    hot: int  # which key most rows have; several sides may have the same one or not
    alike: int  # so many rows are equal but for the key
    seed: int

    def frame(self, spark: Any, seed: int = 0) -> Any:
        """The rows as a DataFrame of two partitions."""
        drawn = random.Random(self.seed + seed)
        rows = []
        for i in range(self.count):
            hot = drawn.random() < 0.85
            cells = []
            for at, (_, kind) in enumerate(self.columns):
                values = ("null", *VALUES[kind])
                if at < self.keys:
                    chosen = self.hot + at if hot else drawn.randrange(len(values))
                    cells.append(values[chosen % len(values)])
                elif at == self.keys:
                    cells.append(str(i // self.alike))
                else:
                    cells.append(values[i // self.alike % len(values)])
            rows.append(cells)
        plain = [f"c{i}" for i in range(len(self.columns))]
        lines = ", ".join(
            "(" + ", ".join(_cast(v, k) for v, (_, k) in zip(row, self.columns, strict=True)) + ")"
            for row in rows or [["null"] * len(plain)]
        )
        made = spark.sql(f"select * from values {lines} as t({', '.join(plain)})")
        made = made if rows else made.where("false")
        return made.repartition(2).toDF(*(name for name, _ in self.columns))


def _cast(value: str, kind: str) -> str:
    return f"cast({value} as {kind})"


@dataclass(frozen=True)
class Case:
    """One join under some settings."""

    left: Table
    right: Table
    itself: bool  # the right side is the left one
    form: str
    how: str
    workers: int
    plan: str
    settings: tuple[tuple[str, str], ...]

    def names(self, table: Table) -> list[str]:
        return [name for name, _ in table.columns[: table.keys]]


@st.composite
def cases(draw: Any) -> Case:
    count = draw(st.sampled_from((1, 1, 1, 2)))
    same = st.sampled_from(KEYS).map(lambda kind: (kind, kind))
    kinds = [draw(st.one_of(same, same, st.sampled_from(TWO_KINDS))) for _ in range(count)]
    form = draw(st.sampled_from(("names", "names", "pairs", "pairs", "expressions", "conditions")))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=8, max_size=8))
    names = names if draw(st.integers(0, 9)) == 0 else list(draw(st.permutations(NAMES)))
    sides = []
    hot = draw(st.sampled_from((1, 1, 2, 3, 4, 5, 0)))  # 0 is null
    for place in (0, 1):
        shift = 3 * place if form != "names" else 0
        more = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=2))
        keys = [(names[i + shift], kinds[i][place]) for i in range(count)]
        rest = [(names[2 + 3 * place], "int"), *((f"v{place}{i}", k) for i, k in enumerate(more))]
        sides.append(
            Table(
                columns=(*keys, *rest),
                keys=count,
                count=draw(st.sampled_from(MOSTLY_ROWS)),
                hot=draw(st.sampled_from((hot, hot, hot, hot, hot + 1))),
                alike=draw(st.sampled_from((1, 1, 2, 100))),
                seed=draw(st.integers(0, 5)),
            )
        )
    return Case(
        left=sides[0],
        right=sides[1],
        # A condition on columns of one DataFrame twice is ambiguous to Spark too.
        itself=form != "conditions" and draw(st.integers(0, 5)) == 0,
        form=form,
        how=draw(st.sampled_from(HOWS)),
        workers=draw(st.integers(2, 6)),
        plan=draw(st.sampled_from(("none", "none", "none", "learned", "saved", "other"))),
        settings=tuple((name, draw(st.sampled_from(SETTINGS[name]))) for name in SETTINGS),
    )


def difference(case: Case, spark: Any, splits: Counter[str]) -> str | None:
    """What ours does otherwise than Spark, or None; counts whether keys were split."""
    with session(spark, case.settings):
        left = case.left.frame(spark)
        right = left if case.itself else case.right.frame(spark)
        plain = outcome(lambda *_: _as_spark(case, left, right), case, spark)
        ours = outcome(lambda *_: _as_ours(case, spark, left, right, splits), case, spark)
    if isinstance(plain, Exception):
        splits["Spark raises"] += 1
        said = isinstance(ours, SkewlessError) or type(ours) is type(plain)
        return None if said else f"Spark raises {str(plain)[:300]}, ours {ours}"
    if isinstance(ours, Exception):
        splits["refused"] += 1
        if isinstance(ours, SkewlessError) and any(words in str(ours) for words in REFUSALS):
            return None
        return f"Spark gives rows, ours raises {type(ours).__name__}: {str(ours)[:1500]}"
    for what, a, b in zip(("schema", "rows", "references"), plain, ours, strict=True):
        if a != b:
            return f"{what}: Spark {_less(a, b)}, ours {_less(b, a)}"
    return None


def _less(a: Any, b: Any) -> Any:
    return (
        dict(list((a - b).items())[:5]) if isinstance(a, Counter) and isinstance(b, Counter) else a
    )


def _workers(case: Case) -> int | None:
    """Keys of floating-point numbers take no number of partitions but Spark's."""
    kinds = [k for table in (case.left, case.right) for _, k in table.columns[: table.keys]]
    floating = any("float" in kind or "double" in kind for kind in kinds)
    return None if floating or case.workers == 2 else case.workers


def _right_keys(case: Case) -> list[str]:
    return case.names(case.left if case.itself else case.right)


def _as_spark(case: Case, left: Any, right: Any) -> Any:
    if case.form == "names":
        joined = left.join(right, case.names(case.left), case.how)
        return _shown(case, joined, left, right)
    # By place, which no name can disturb.
    one = left.toDF(*(f"l{i}" for i in range(len(left.columns))))
    two = right.toDF(*(f"r{i}" for i in range(len(right.columns))))
    equal = [F.col(f"l{i}") == F.col(f"r{i}") for i in range(case.left.keys)]
    if case.form == "conditions":
        equal.append(F.col(f"l{case.left.keys}") < F.col(f"r{case.left.keys}") + 20)
    joined = one.join(two, reduce(and_, equal), case.how)
    names = left.columns + right.columns
    joined = joined.toDF(*names[: len(joined.columns)])
    references = None
    if not case.itself and case.form != "conditions":
        equal = [
            left[quoted(a)] == right[quoted(b)]
            for a, b in zip(case.names(case.left), _right_keys(case), strict=True)
        ]
        references = left.join(right, reduce(and_, equal), case.how)
    return *_rows(joined), _references(case, references, left, right)


def _as_ours(case: Case, spark: Any, left: Any, right: Any, splits: Counter[str]) -> Any:
    on = _on(case, left, right)
    if case.plan == "none":
        with _listening() as heard:
            joined = join(left, right, on, case.how, workers=_workers(case))
        said = heard.said
    else:
        plan = _learned(case, spark, left, right, on)
        said = plan.describe()
        joined = join(left, right, on, case.how, plan=plan)
    found = re.search(r"Hot keys: (\d+) split", said)
    splits["split" if found and int(found[1]) else "placed" if found else "plain"] += 1
    return _shown(case, joined, left, right)


def _on(case: Case, left: Any, right: Any) -> Any:
    names = case.names(case.left)
    if case.form == "names":
        return names if len(names) > 1 or case.workers % 2 else names[0]
    on: list[Any] = list(zip(names, _right_keys(case), strict=True))
    if case.form == "expressions":
        return [(F.col(quoted(a)), right[quoted(b)]) for a, b in on]
    if case.form == "conditions":
        place = case.left.keys
        x, y = left[quoted(left.columns[place])], right[quoted(right.columns[place])]
        on.append(x < y + 20)
    return on


def _learned(case: Case, spark: Any, left: Any, right: Any, on: Any) -> JoinPlan:
    """A plan of these rows, or of others of the same kind and another type of join."""
    if case.plan == "other" and case.form in ("names", "pairs"):
        other = case.left.frame(spark, 1)
        partner = other if case.itself else case.right.frame(spark, 1)
        return learn_join(other, partner, on)
    plan = learn_join(left, right, on, case.how)
    return JoinPlan.from_json(plan.to_json()) if case.plan == "saved" else plan


@contextmanager
def _listening() -> Any:
    """What skewless logs meanwhile."""
    heard, logger = _Heard(), logging.getLogger("skewless")
    before = logger.level
    logger.addHandler(heard)
    logger.setLevel(logging.INFO)
    try:
        yield heard
    finally:
        logger.removeHandler(heard)
        logger.setLevel(before)


def _shown(case: Case, joined: Any, left: Any, right: Any) -> Any:
    return *_rows(joined), _references(case, joined, left, right)


def _rows(joined: Any) -> tuple[Any, Counter[str]]:
    """Schema with nullability, and each row with how often it comes."""
    names = [f"c{i}" for i in range(len(joined.columns))]
    columns = [
        F.col(name).cast("string") if _odd(field.dataType.simpleString()) else F.col(name)
        for name, field in zip(names, joined.schema.fields, strict=True)
    ]
    rows = joined.toDF(*names).select(*columns).collect()
    return joined.schema, Counter(repr(tuple(row)) for row in rows)


def _odd(kind: str) -> bool:
    return any(word in kind for word in ("interval", "variant", "timestamp", "date"))


def _references(case: Case, joined: Any, left: Any, right: Any) -> Any:
    """What columns of the sides are after the join."""
    if joined is None or case.itself or case.form == "conditions":
        return None
    columns = [left[quoted(name)] for name in left.columns]
    if "semi" not in case.how and "anti" not in case.how:
        columns += [right[quoted(name)] for name in right.columns]
    return _rows(joined.select(*columns))


class _Heard(logging.Handler):
    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.said += record.getMessage()
