"""The diagnosis of a stream or a table: its keys, the candidates, the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from skewless.diagnose.keys import HOT_KEYS, HotKey, frequent_keys, share_error
from skewless.diagnose.names import names_of
from skewless.diagnose.predict import Candidate, check_predictable, predict
from skewless.diagnose.reading import Reading, reading_of
from skewless.diagnose.sample import LIMIT, Sample, Thinner
from skewless.diagnose.units import percent, printable, times
from skewless.diagnose.verdict import CANDIDATES, Work, check_work, judge
from skewless.errors import SkewlessError
from skewless.hashing import U64, check_seed, identities
from skewless.simulate.replication import PairCounter
from skewless.simulate.sources import check_sources
from skewless.streams import Stream, stream_of
from skewless.streams.parquet import Parquet

SOURCES = 8  # as many as `skewless compare` has


@dataclass(frozen=True)
class Diagnosis:
    """What a stream or table tells of skew; the fields of `skewless diagnose --stream --json`.

    subject: what was read; key: by which key; work: what is done with the rows of a key
    workers, sources: of the job that is predicted
    messages, keys, nulls: of the whole; keys are exact unless a note says how they were estimated
    sampled: the messages that shares and predictions rest on
    choice: the candidate that the verdict recommends
    """

    subject: str
    key: str
    work: str
    workers: int
    sources: int
    messages: int
    keys: int
    nulls: int
    sampled: int
    hot: list[HotKey]
    candidates: list[Candidate]
    choice: str
    verdict: str
    code: str
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        lines = [f"{printable(self.subject)}, by {printable(self.key)}: {self.verdict}"]
        lines += [
            f"  {c.scheme}: {times(c.time_over_ideal)} × ideal, fullest worker "
            f"{times(c.max_over_mean)} × the mean, {times(c.replication)} workers per key"
            for c in self.candidates
        ]
        lines += [
            f"  {printable(h.key)}: {percent(h.share)} ± {percent(h.error)}" for h in self.hot[:5]
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        from skewless.diagnose.page.data import data_body
        from skewless.diagnose.page.page import fragment

        return fragment(data_body(self))


@dataclass(frozen=True)
class KeyRanking:
    """Several keys of one table, the worst first."""

    diagnoses: list[Diagnosis]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in JSON."""
        return {
            "worst": self.diagnoses[0].key,
            "keys": [diagnosis.to_dict() for diagnosis in self.diagnoses],
        }

    def rows(self) -> list[dict[str, Any]]:
        """A row per key."""
        return [
            {
                "key": d.key,
                "keys": d.keys,
                "nulls": d.nulls,
                "hottest": d.hot[0].key if d.hot else "",
                "share": percent(d.hot[0].share) if d.hot else "",
                "time_over_ideal by hash": round(d.candidates[0].time_over_ideal, 2),
                "choice": d.choice,
            }
            for d in self.diagnoses
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{printable(row['key'])}: {times(row['time_over_ideal by hash'])} × ideal by plain "
            f"hash, hottest {printable(row['hottest'])} with {row['share']}, {row['keys']:,} keys, "
            f"{row['nulls']:,} nulls; use {row['choice']}"
            for row in self.rows()
        )

    def _repr_html_(self) -> str:
        from skewless.diagnose.page.data import ranking_body
        from skewless.diagnose.page.page import fragment

        return fragment(ranking_body(self))


def ranking(diagnoses: Sequence[Diagnosis]) -> KeyRanking:
    """The key by which plain hash is slowest comes first."""
    ordered = sorted(diagnoses, key=lambda d: -d.candidates[0].time_over_ideal)
    return KeyRanking(ordered)


def diagnose_stream(
    stream: Stream | str,
    workers: int,
    *,
    work: str = "fold",
    sources: int = SOURCES,
    seed: int = 0,
    progress: Callable[[int], None] = lambda messages: None,
) -> Diagnosis:
    """Diagnose a stream or a file by one pass over its keys; needs no Spark.

    workers: of the job that shall be predicted
    work: fold, group, map or aggregate; see `verdict`
    sources: tasks that read it, each of which routes by itself
    """
    flow = stream_of(stream)
    kind = check_work(work)
    if kind == "join":
        raise SkewlessError(
            "A join has two sides, and a stream is one: use skewless.spark.diagnose(df, key, "
            "with_=other)."
        )
    workers, sources = check_predictable(workers), check_sources(sources)
    seed = check_seed(seed)
    sample = _sample(flow, sources, seed, progress)
    names = names_of(flow, frequent_keys(sample).identities)
    return diagnosis_of(
        sample, workers, kind, names, flow.spec, reading_of(flow, sources, seed), seed
    )


def diagnosis_of(
    sample: Sample,
    workers: int,
    work: Work,
    names: Mapping[int, str],
    subject: str,
    reading: Reading,
    seed: int = 0,
) -> Diagnosis:
    """The diagnosis of a sample whose hot keys have these names."""
    found = frequent_keys(sample)
    size = sample.keys.size
    hot = [
        HotKey(names.get(number, f"hash {number}"), count / size, share_error(count / size, sample))
        for number, count in zip(found.identities, found.counts, strict=True)
    ]
    candidates = predict(sample, CANDIDATES[work], workers, seed)
    verdict = judge(candidates, hot, work, workers, sample.messages, reading)
    return Diagnosis(
        subject=subject,
        key=reading.key_name,
        work=work,
        workers=workers,
        sources=int(np.unique(sample.sources).size),
        messages=sample.messages,
        keys=sample.distinct,
        nulls=sample.nulls,
        sampled=size,
        hot=hot[:HOT_KEYS],
        candidates=candidates,
        choice=verdict.choice,
        verdict=verdict.sentence,
        code=verdict.code,
        notes=_notes(sample),
    )


def _notes(sample: Sample) -> list[str]:
    notes = []
    if sample.keys.size < sample.messages:
        notes.append(
            f"Shares and predictions rest on a random sample of {sample.keys.size:,} of "
            f"{sample.messages:,} messages; workers per key are those of the sample."
        )
    if not sample.distinct_is_exact:
        notes.append("The number of keys is an estimate, within about 3 %.")
    if sample.nulls:
        share = percent(sample.nulls / sample.messages)
        notes.append(f"{sample.nulls:,} messages ({share}) have a null for a key.")
    return notes


def _sample(flow: Stream, sources: int, seed: int, progress: Callable[[int], None]) -> Sample:
    thinner, distinct = Thinner(LIMIT, seed), PairCounter(1)
    nulls = 0
    for keys, absent in _chunks(flow, seed):
        nulls += absent
        numbers = np.arange(thinner.seen, thinner.seen + keys.size)
        thinner.add(keys, (numbers % sources).astype(np.int32))
        distinct.add(keys, np.zeros(keys.size, np.int32))
        progress(keys.size)
    if not thinner.seen:
        flow.refuse_empty()
    pieces = list(thinner.kept())
    keys = np.concatenate([piece[0] for piece in pieces])
    of = np.concatenate([piece[1] for piece in pieces])
    return Sample(keys, of, None, thinner.seen, distinct.count().keys, nulls)


def _chunks(flow: Stream, seed: int) -> Iterator[tuple[U64, int]]:
    """The identities that Spark routes by, and how many of them are of nulls."""
    if isinstance(flow, Parquet):  # as a stream it refuses nulls, but here they are worth knowing
        for values in flow.values():
            yield identities(values), values.null_count
        return
    for chunk in flow.chunks(seed):
        yield chunk.keys, 0
