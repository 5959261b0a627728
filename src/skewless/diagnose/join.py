"""The diagnosis of a join: the work of a key is the rows that it reads and the pairs that it makes.

By plain hash all of a key goes to one worker. `skewless.spark.join` splits a hot key into a grid of
cells, so its pairs are shared by all workers at the price of copies of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skewless.diagnose.data import Diagnosis
from skewless.diagnose.keys import HOT_KEYS, HotKey, share_error
from skewless.diagnose.predict import Candidate
from skewless.diagnose.sample import F64, Sample
from skewless.diagnose.units import percent, printable, size, times
from skewless.hashing import U64
from skewless.schemes import scheme_of

GRID = "join"
HOT_WORK = 0.1  # of a worker's even share: keys with more than that are split
ADAPTIVE_BYTES = 256 << 20  # a partition below that is never split by adaptive execution
ADAPTIVE_TIMES = 5  # nor one below that many times the median
ENOUGH = 1.1


@dataclass(frozen=True)
class Side:
    """One side of a join."""

    sample: Sample
    row_bytes: int

    @property
    def bytes(self) -> int:
        """What the whole side takes, by the types of its columns."""
        return self.sample.messages * self.row_bytes

    def counts(self, keys: U64) -> F64:
        """How many rows of the whole each of these keys has, as far as the sample knows."""
        own, counts = np.unique(self.sample.keys, return_counts=True)
        if not own.size:
            return np.zeros(keys.size)
        at = np.minimum(np.searchsorted(own, keys), own.size - 1)
        return np.where(own[at] == keys, counts[at], 0) / self.sample.rate


def join_diagnosis(
    left: Side,
    right: Side,
    workers: int,
    names: Mapping[int, str],
    subject: str,
    key_name: str,
    key: str,
    broadcast_bytes: int,
    adaptive: bool,
    pairs: bool = False,
) -> Diagnosis:
    """The diagnosis of an inner join of two sides on one key.

    key: what to join on as an expression of Python
    broadcast_bytes: the size below which Spark broadcasts a side
    adaptive: whether adaptive execution is on
    pairs: the key is pairs of columns, which Spark's own join does not take
    """
    keys = np.union1d(left.sample.keys, right.sample.keys)
    one, other = left.counts(keys), right.counts(keys)
    work = one + other + one * other
    plain = _plain(keys, work, workers)
    grid = _grid(keys, work, one, other, workers)
    order = np.argsort(-work, kind="stable")[:HOT_KEYS]
    total = float(work.sum()) or 1.0
    hot = [
        HotKey(
            names.get(int(keys[i]), f"hash {keys[i]}"),
            float(one[i]) / max(left.sample.messages, 1),
            share_error(float(one[i]) / max(left.sample.messages, 1), left.sample),
        )
        for i in order.tolist()
    ]
    share = float(work[order[0]]) / total if order.size else 0.0
    choice, sentence, code = _verdict(
        left,
        right,
        plain,
        grid,
        hot[0].key if hot else "",
        share,
        workers,
        key,
        broadcast_bytes,
        adaptive,
        int(keys[order[0]]) if order.size else 0,
        pairs,
    )
    notes = ["Work is counted in rows read and pairs made, for an inner join; nulls match nothing."]
    if left.sample.rate < 1 or right.sample.rate < 1:
        notes.append("Counts are estimates from random samples of both sides.")
    return Diagnosis(
        subject=subject,
        key=key_name,
        work="join",
        workers=workers,
        sources=int(np.unique(left.sample.sources).size),
        messages=left.sample.messages,
        keys=left.sample.distinct,
        nulls=left.sample.nulls,
        sampled=left.sample.keys.size,
        hot=hot,
        candidates=[plain, grid],
        choice=choice,
        verdict=sentence,
        code=code,
        notes=notes,
    )


def _homes(keys: U64, workers: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    scheme = scheme_of("key")
    out = np.empty(keys.size, np.int32)
    ones, times_ = np.broadcast_to(np.ones(1), keys.size), np.zeros(keys.size)
    plan = scheme.plan(workers, 0)
    scheme.route(plan, scheme.tally(plan, 0), np.ascontiguousarray(keys), ones, times_, out)
    return out


def _plain(keys: U64, work: F64, workers: int) -> Candidate:
    return _candidate("key", _loads(keys, work, workers), 1.0)


def _loads(keys: U64, work: F64, workers: int) -> F64:
    """The work of each worker where keys go by their hash."""
    made = np.bincount(_homes(keys, workers), work, minlength=workers)
    return made.astype(np.float64)


def _grid(keys: U64, work: F64, one: F64, other: F64, workers: int) -> Candidate:
    """Hot keys over all workers, with the rows of the smaller side copied to each."""
    mean = float(work.sum()) / workers
    split = work > HOT_WORK * mean
    loads = _loads(keys[~split], work[~split], workers)
    copies = np.minimum(one, other)[split] * (workers - 1)
    loads = loads + (work[split].sum() + copies.sum()) / workers
    replication = float(((workers - 1) * split.sum() + keys.size) / max(keys.size, 1))
    made = _candidate(GRID, loads, replication)
    # Copies are work too, so the ideal is the work without them.
    return Candidate(
        GRID, made.max_over_mean, replication, float(loads.max() / (mean or 1.0)), made.loads
    )


def _candidate(name: str, loads: F64, replication: float) -> Candidate:
    total = float(loads.sum()) or 1.0
    over = float(loads.max() * loads.size / total)
    return Candidate(name, over, replication, over, (loads / total).tolist())


def _verdict(
    left: Side,
    right: Side,
    plain: Candidate,
    grid: Candidate,
    hottest: str,
    share: float,
    workers: int,
    key: str,
    broadcast_bytes: int,
    adaptive: bool,
    hot_identity: int,
    pairs: bool,
) -> tuple[str, str, str]:
    ours = "from skewless.spark import join\n\n"
    # Ours leaves a join to Spark where nothing is to be gained.
    native = (
        f"{ours}result = join(df, other, {key})" if pairs else f"result = df.join(other, {key})"
    )
    native += "\n"
    small, name = (right, "other") if right.bytes <= left.bytes else (left, "df")
    if small.bytes <= max(broadcast_bytes, 0):
        big = "df" if name == "other" else "other"
        joined = f"{big}.join(F.broadcast({name}), {key})"
        if pairs:
            joined = f"join({big}, F.broadcast({name}), {key})"
        code = "from pyspark.sql import functions as F\n"
        code += f"{ours if pairs else chr(10)}result = {joined}\n"
        return (
            "",
            f"Broadcast the small side: {name} has {small.sample.messages:,} rows, about "
            f"{size(small.bytes)}, so no row of the other side need be shuffled.",
            code,
        )
    if plain.time_over_ideal <= ENOUGH:
        return (
            "key",
            "Nothing is skewed that matters here: by plain hash the slowest of "
            f"{workers:,} workers takes {times(plain.time_over_ideal)} × an even share.",
            native,
        )
    facts = (
        f"'{printable(hottest)[:40]}' makes {percent(share)} of the work, and by plain hash "
        f"the slowest of {workers:,} workers takes {times(plain.time_over_ideal)} × an even share"
    )
    if adaptive and _adaptive_handles(left, right, hot_identity, workers):
        return (
            "key",
            f"Leave it: adaptive execution handles this, for the partition of the hottest key is "
            f"large enough to be split ({facts}).",
            native,
        )
    code = f"{ours}result = join(df, other, {key})\n"
    return (
        GRID,
        f"Use skewless.spark.join: {facts}, and with hot keys split "
        f"{times(grid.time_over_ideal)} ×.",
        code,
    )


def _adaptive_handles(left: Side, right: Side, hot: int, workers: int) -> bool:
    """Would adaptive execution split the hottest key, and would that share out its work?

    It splits partitions of more than 256 MB and five times the median, by bytes read. It knows
    nothing of the pairs that a key makes, so a key that is hot on both sides stays slow.
    """
    one, other = (side.counts(np.array([hot], np.uint64))[0] for side in (left, right))
    for side, own, partners in ((left, one, other), (right, other, one)):
        median = side.bytes / workers
        if own * side.row_bytes > max(ADAPTIVE_BYTES, ADAPTIVE_TIMES * median):
            return bool(partners <= 1000)
    return False
