"""Tables with hot keys, and what it means that two joins are the same."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import contextmanager

TYPES = ("inner", "left", "right", "full", "left_semi", "left_anti")


def skewed(count, hot, cold, seed):
    """Numbered rows of (key, number): four of five have a hot key."""
    drawn = random.Random(seed)
    return [(drawn.choice(hot if drawn.random() < 0.8 else cold), i) for i in range(count)]


def two_tables(spark, hot_left, hot_right, cold, kind="string", sizes=(500, 300)):
    """A left table (k, x) and a right one (k, y)."""
    left = spark.createDataFrame(skewed(sizes[0], hot_left, cold, 1), f"k {kind}, x int")
    right = spark.createDataFrame(skewed(sizes[1], hot_right, cold, 2), f"k {kind}, y int")
    return left, right


def assert_same(found, expected):
    """The same names, types, nullability and rows, each as often."""
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


def rows_of(df):
    """Rows with how often each comes; NaN is itself here."""
    return Counter(repr(tuple(row)) for row in df.collect())


@contextmanager
def settings(spark, **values):
    """Spark's settings for a while; a name is given with _ for its dots."""
    names = {key.replace("_", "."): str(value) for key, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
