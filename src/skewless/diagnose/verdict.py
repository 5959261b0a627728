"""What to do, in one sentence, and the code to paste.

`work` says what the user does with the rows of a key, for that decides what is legal:

- fold: a function of his own whose partial results merge (the default)
- group: a function that needs all rows of a key at once
- map: a function of single rows, whose cost may depend on the key
- aggregate: Spark's own count, sum, avg …
- join: see `join`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from skewless.diagnose.keys import HotKey
from skewless.diagnose.predict import Candidate
from skewless.diagnose.reading import Reading, script
from skewless.diagnose.units import percent, printable, times
from skewless.errors import unknown

Work = Literal["fold", "group", "map", "aggregate", "join"]
ENOUGH = 1.05  # times the best: what is not slower than that is as good, if it is simpler

PLAIN = "key"
DISTRIBUTION_AWARE = "distribution-aware:theta=0.001,mu=10"
CANDIDATES: dict[Work, tuple[str, ...]] = {
    "fold": (PLAIN, "partial", "graded", "graded-planned"),
    "group": (PLAIN, DISTRIBUTION_AWARE),
    "map": (PLAIN, "shuffle", "proactive"),
    "aggregate": (PLAIN,),
    "join": (PLAIN,),
}


@dataclass(frozen=True)
class Verdict:
    """A sentence, the candidate that it recommends ("" for none of them), and code."""

    sentence: str
    choice: str
    code: str


def check_work(work: str) -> Work:
    """The kind of work, or one sentence that lists all."""
    for known in get_args(Work):
        if work == known:
            return known
    raise unknown("kind of work called", str(work), get_args(Work))


def choose(candidates: Sequence[Candidate], work: Work) -> Candidate:
    """The candidate to recommend: as good as the fastest, and the simplest of these."""
    best = min(candidate.time_over_ideal for candidate in candidates)
    good = [c for c in candidates if c.time_over_ideal <= ENOUGH * best]
    if good[0].scheme == PLAIN:
        return good[0]
    near = [c for c in good if c.time_over_ideal <= 1.02 * best]
    if work == "map":  # round robin needs no learning
        return near[0]
    return min(near, key=lambda c: (round(c.replication, 2), c.time_over_ideal))


def judge(
    candidates: Sequence[Candidate],
    hot: Sequence[HotKey],
    work: Work,
    workers: int,
    messages: int,
    reading: Reading,
) -> Verdict:
    """The verdict on a table or stream; `reading` says how its code gets at the DataFrame."""
    plain = next(c for c in candidates if c.scheme == PLAIN)
    facts = _facts(plain, hot, workers, messages)
    if work == "aggregate":
        return Verdict(
            f"Leave it: Spark's own aggregate combines the rows of a key before the shuffle, which "
            f"absorbs this ({facts}).",
            PLAIN,
            script(
                reading, (), f"READ_DF\nresult = df.groupBy({_unlisted(reading.key)}).count()\n"
            ),
        )
    chosen = choose(candidates, work)
    if chosen.scheme == PLAIN:
        return _leave(chosen, candidates, facts, work, workers, reading)
    best = f"{_name(chosen)} takes {times(chosen.time_over_ideal)} ×"
    if work == "fold":
        sentence = f"Use {_name(chosen)}: {facts}, and {best} with "
        sentence += f"{times(chosen.replication)} workers per key"
    elif work == "group":
        sentence = f"Use {_name(chosen)}, which packs whole keys: {facts}, and {best}"
        if hot and hot[0].share * workers > ENOUGH:
            sentence += (
                f"; less is not possible while one worker must see all of '{_short(hot[0].key)}'"
            )
    else:
        sentence = f"{_MAP[chosen.scheme]}: {facts}, and {best}"
    return Verdict(sentence + ".", chosen.scheme, _code(chosen.scheme, work, workers, reading))


_MAP = {
    "shuffle": "Spread the rows round robin, for no key needs them together",
    "proactive": "Use balanced_map, which learns what the rows of a key cost",
}


def _leave(
    plain: Candidate,
    candidates: Sequence[Candidate],
    facts: str,
    work: Work,
    workers: int,
    reading: Reading,
) -> Verdict:
    if plain.time_over_ideal <= 1.1:
        sentence = f"Nothing is skewed that matters here: {facts}."
    else:
        others = [c for c in candidates if c.scheme != PLAIN]
        least = min((c.time_over_ideal for c in others), default=plain.time_over_ideal)
        sentence = (
            f"Leave it by plain hash: {facts}, and of what is legal here nothing does better "
            f"than {times(least)} ×"
        )
        if work == "group":
            sentence += ", since one worker must see all rows of a key"
        sentence += "."
    return Verdict(sentence, PLAIN, _code(PLAIN, work, workers, reading))


def _facts(plain: Candidate, hot: Sequence[HotKey], workers: int, messages: int) -> str:
    said = ""
    if hot:
        said = f"'{_short(hot[0].key)}' has {percent(hot[0].share)} of {messages:,} messages, and "
    return (
        f"{said}by plain hash the slowest of {workers:,} workers takes "
        f"{times(plain.time_over_ideal)} × an even share of the time"
    )


def _short(key: str) -> str:
    """A key in a sentence: on one line, and not all of a long one."""
    line = printable(key)
    return line if len(line) <= 40 else line[:39] + "…"


def _name(candidate: Candidate) -> str:
    return candidate.scheme.partition(":")[0]


def _unlisted(key: str) -> str:
    return key[1:-1] if key.startswith("[") else key


_FOLDS, _GROUP = "from skewless import folds", "from skewless.spark import group"
_LEARN = "from skewless.spark import group, learn"


def _code(scheme: str, work: Work, workers: int, reading: Reading) -> str:
    """What to paste; it runs as it is where `df` is the user's DataFrame."""
    if work == "map":
        return _map_code(scheme, workers, reading)
    if work == "group":
        return _group_code(scheme, workers, reading)
    key = reading.key
    if scheme != "graded-planned":
        body = (
            f'READ_DF\ngrouped = group(df, {key}, "{scheme}", workers={workers})\n'
            "result = grouped.fold(folds.count())  # put your own fold here\n"
        )
        return script(reading, (_FOLDS, _GROUP), body)
    body = (
        f'READ_DF\nplan = learn(df, {key}, "{scheme}", {workers})\n'
        "row = F.monotonically_increasing_id()  # or a column that tells rows of a key apart\n"
        f"grouped = group(df, {key}, plan, salt=row)\n"
        "result = grouped.fold(folds.count())  # put your own fold here\n"
    )
    return script(reading, ("from pyspark.sql import functions as F", _FOLDS, _LEARN), body)


_WHOLE = """\
def function(rows):  # put your own here: all rows of a key in, a table out
    return pa.table({"rows": pa.array([rows.num_rows], pa.int64())})


READ_DF
"""


def _group_code(scheme: str, workers: int, reading: Reading) -> str:
    key, learned, given = reading.key, "", f'"{scheme}", workers={workers}'
    if scheme != PLAIN:
        learned, given = f'plan = learn(df, {key}, "{scheme}", {workers})\n', "plan"
    body = (
        f"{_WHOLE}{learned}grouped = group(df, {key}, {given})\n"
        'result = grouped.apply(function, "rows long")\n'
    )
    return script(reading, ("import pyarrow as pa", _LEARN if learned else _GROUP), body)


_ROWS = """\
def function(batches):  # put your own here: Arrow batches in, Arrow batches out
    yield from batches


READ_DF
"""


def _map_code(scheme: str, workers: int, reading: Reading) -> str:
    if scheme == "proactive":
        called = f"df, function, df.schema, key={reading.key}, workers={workers}"
        body = f"{_ROWS}result = balanced_map({called})\n"
        return script(reading, ("from skewless.spark import balanced_map",), body)
    spread = "df" if scheme == PLAIN else f"df.repartition({workers})"
    return script(reading, (), f"{_ROWS}result = {spread}.mapInArrow(function, df.schema)\n")
