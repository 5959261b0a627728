"""The diagnosis of a DataFrame: which key is hot, what it costs, what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame

from skewless.diagnose.data import Diagnosis, KeyRanking, diagnosis_of, ranking
from skewless.diagnose.join import Side, join_diagnosis
from skewless.diagnose.predict import check_predictable
from skewless.diagnose.reading import given
from skewless.diagnose.verdict import check_work
from skewless.errors import SkewlessError
from skewless.hashing import check_seed
from skewless.spark.diagnose.sampling import sample_of, without_nulls
from skewless.spark.input.checks import Key, check_server, key_columns, worker_count

# A column's own name, bare or in backticks; anything else is a field.
_COLUMN = re.compile(r"`((?:[^`]|``)*)`|[^.`]*")
_DEFAULT_BYTES = {"string": 20, "binary": 100}


def diagnose(
    df: DataFrame,
    key: Key,
    workers: int | None = None,
    cost: str | Column | None = None,
    with_: DataFrame | None = None,
    *,
    work: str | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Find out in one pass how hot the keys of a DataFrame are, what that costs, and what to do.

    The result displays itself in a notebook.

    key: a column's name, a Column or a list of them, which is one key of several columns
    workers: the number of workers to predict for; by default, as many as Spark has shuffle
        partitions
    cost: what a row costs, a column of numbers in any unit; by default, all rows cost the same
    with_: the other side of a join on this key
    work: what you do with the rows of a key. "fold": a function of your own whose partial results
        merge (the default); "group": a function that needs all rows of a key at once; "map": a
        function of single rows; "aggregate": Spark's own count, sum …; "join" (the default if
        there is a with_)
    """
    check_server(df)
    kind = check_work(work or ("fold" if with_ is None else "join"))
    if (kind == "join") != (with_ is not None):
        raise SkewlessError(
            'A join has two sides: give the other one with with_=, and leave work= out or "join".'
        )
    if with_ is not None:
        check_server(with_)
        if cost is not None:
            raise SkewlessError(
                "The work of a join is in the rows that come out, which are counted: leave cost= "
                "out beside with_=."
            )
    for side in (df, with_):
        if side is not None and side.isStreaming:
            raise SkewlessError(
                "A stream has no end at which to diagnose it: read a part of its data as a batch, "
                "or give the event log of a run to skewless diagnose --event-log."
            )
    count, seed = worker_count(df, workers), check_seed(seed)
    check_predictable(count)
    _, fields = key_columns(df, key)
    name = ", ".join(field.name for field in fields)
    reading = given(_expression(key), name)
    if with_ is not None:
        key_columns(with_, key)  # says now what is wrong with it
        return _of_join(df, with_, key, count, name, seed)
    sample, names = sample_of(df, key, cost, seed)
    if not sample.messages:
        _refuse_empty()
    return diagnosis_of(sample, count, kind, names, _subject(df), reading, seed)


def diagnose_keys(
    df: DataFrame,
    keys: Sequence[Key],
    workers: int | None = None,
    cost: str | Column | None = None,
    *,
    work: str = "fold",
    seed: int = 0,
) -> KeyRanking:
    """Diagnose several candidate keys, one pass each, and say which is worst.

    keys: a list of keys, each as for `diagnose`
    """
    check_server(df)
    if not isinstance(keys, list | tuple | set | dict) or not keys:
        raise SkewlessError("Several keys are a list of at least one: ['user', ['user', 'day']].")
    for key in keys:
        key_columns(df, key)  # says now what is wrong with any of them
    return ranking([diagnose(df, key, workers, cost, work=work, seed=seed) for key in keys])


def _refuse_empty() -> None:
    raise SkewlessError(
        "The DataFrame has no rows, or for a join none whose key is not null: there is nothing to "
        "diagnose."
    )


def _subject(df: DataFrame) -> str:
    names = df.columns
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"DataFrame[{shown}]"


def _expression(key: Key) -> str:
    """The key in code to paste; a Column has no text that could be pasted, so it is `key`."""
    parts: Sequence[Any] = list(key) if isinstance(key, list | tuple) else [key]
    if not all(isinstance(part, str) for part in parts):
        return "key"
    return repr(parts[0]) if len(parts) == 1 else repr(list(parts))


def _join_expression(key: Key) -> tuple[str, bool]:
    """What to join on, in code to paste, and whether that is pairs: only columns go by name."""
    parts: Sequence[Any] = list(key) if isinstance(key, list | tuple) else [key]
    if not all(isinstance(part, str) for part in parts):
        several = isinstance(key, list | tuple)
        return ("[(part, part) for part in key]" if several else "[(key, key)]"), True
    names = [_COLUMN.fullmatch(part) for part in parts]
    if not all(names):
        return repr([(part, part) for part in parts]), True
    plain = [(n[1].replace("``", "`") if n[1] is not None else n[0]) for n in names if n]
    return (repr(plain[0]) if len(plain) == 1 else repr(plain)), False


def _of_join(
    left: DataFrame, right: DataFrame, key: Key, workers: int, name: str, seed: int
) -> Diagnosis:
    code, pairs = _join_expression(key)
    # A join matches no null, which is equal to nothing and costs next to nothing.
    one, names = sample_of(without_nulls(left, key), key, None, seed)
    if not one.messages:
        _refuse_empty()
    other, _ = sample_of(without_nulls(right, key), key, None, seed)
    sides = Side(one, _row_bytes(left)), Side(other, _row_bytes(right))
    threshold = left.sparkSession.conf.get("spark.sql.autoBroadcastJoinThreshold", "10485760")
    adaptive = left.sparkSession.conf.get("spark.sql.adaptive.enabled", "true") == "true"
    return join_diagnosis(
        *sides, workers, names, _subject(left), name, code, _bytes(str(threshold)), adaptive, pairs
    )


def _bytes(setting: str) -> int:
    """A size as Spark writes it: a number, perhaps with a unit."""
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    text = setting.strip().lower().removesuffix("b")
    factor = units.get(text[-1:], 1)
    digits = text.rstrip("kmgt")
    return int(float(digits) * factor) if digits.lstrip("-").isdigit() else 10 << 20


def _row_bytes(df: DataFrame) -> int:
    """What Spark reckons a row to take, from the types alone."""
    return 8 + sum(_DEFAULT_BYTES.get(kind.split("<")[0].split("(")[0], 8) for _, kind in df.dtypes)
