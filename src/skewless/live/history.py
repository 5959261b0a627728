"""What the page knows: the newest sight of each query, and a bounded past of its figures.

Readers ask for what has changed since a version they name. So nothing waits in a queue for a
reader that is slow: whenever it comes back, it gets the newest state and the points it missed.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

POINTS_KEPT = 600  # per query: ten minutes of a batch a second
QUERIES_KEPT = 32
SENTENCE_KEPT = 400  # characters of what a failed query said
ENDED = ("ended", "failed")


@dataclass(frozen=True)
class HotKey:
    """A key, how many messages it had at least, and at how many workers it was among the hottest.

    name: None for a null key
    """

    name: str | None
    messages: int
    workers: int


@dataclass(frozen=True)
class PlanFacts:
    """What a plan says of keys by themselves: how many it names, how many of them are split.

    split, widest: None where each source decides how widely it splits the keys
    """

    keys: int
    split: int | None
    widest: int | None


@dataclass(frozen=True)
class Sight:
    """What one run or micro-batch of a query showed.

    query: the run; name: what people call it, such as the name of the query
    batch: None for a batch job
    hot: the hottest keys, hottest first; None if nobody counted them
    plan: None if the scheme keeps no list of keys
    """

    query: str
    name: str
    scheme: str
    batch: int | None
    ended_s: float
    messages: int
    loads: Sequence[int]
    busy_s: Sequence[float]
    max_over_mean: float
    stddev_percent: float
    replication: float | None
    seconds: float
    messages_per_second: float
    hot: Sequence[HotKey] | None = None
    plan: PlanFacts | None = None


@dataclass
class _Query:
    """One query; its points are (version, figures as the page wants them)."""

    about: dict[str, Any]
    state: str
    changed: int
    why: str | None = None
    batches: int = 0
    messages: int = 0
    newest: Sight | None = None
    points: deque[tuple[int, list[float | None]]] = field(
        default_factory=lambda: deque(maxlen=POINTS_KEPT)
    )


class History:
    """All queries of a page, safe for any number of threads."""

    def __init__(self) -> None:
        self._queries: dict[str, _Query] = {}
        self._changed = threading.Condition()
        self._version = 1  # 0 is what a reader has that knows nothing
        self._closed = False
        # Tells a page that reconnects whether this is still the server that it knew.
        self._server = uuid.uuid4().hex[:12]

    def show(self, sight: Sight) -> None:
        """Take in what a batch showed; a few appends, whoever is looking."""
        with self._changed:
            query = self._query(sight.query, sight.name, sight.scheme)
            query.about["workers"] = len(sight.loads)
            query.state = "ended" if sight.batch is None else "running"
            query.why = None
            query.batches += 1
            query.messages += sight.messages
            query.newest = sight
            query.points.append((self._version, _point(sight)))
            self._changed.notify_all()

    def tell(self, query: str, state: str, why: str | None = None) -> None:
        """A query runs, waits, has ended or failed; one that failed unseen appears by that."""
        with self._changed:
            if query not in self._queries and state != "failed":
                return
            known = self._query(query, "failed before its first batch", "")
            known.state = state
            known.why = None if why is None else why[:SENTENCE_KEPT]
            self._changed.notify_all()

    def close(self) -> None:
        """Wake all who wait: there is nothing more to come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, version: int, timeout_s: float) -> bool:
        """Wait for something newer than this version; False once nothing more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._version > version, timeout_s)
            return not self._closed

    def since(self, known: int) -> tuple[int, dict[str, Any]]:
        """The version now, and what has changed since the given one; 0 asks for everything."""
        with self._changed:
            changed: list[dict[str, Any]] = [
                {
                    **query.about,
                    "id": name,
                    "state": query.state,
                    "why": query.why,
                    "batches": query.batches,
                    "messages": query.messages,
                    "newest": query.newest,
                    "points": [point for at, point in query.points if at > known],
                }
                for name, query in self._queries.items()
                if query.changed > known
            ]
            message = {
                "server": self._server,
                "all": known == 0,
                "kept": POINTS_KEPT,
                "order": list(self._queries),
                "queries": changed,
            }
            version = self._version
        for one in changed:  # not while a batch may wait to be shown
            if one["newest"] is not None:
                one["newest"] = _newest(one["newest"])
        return version, message

    def _query(self, query: str, name: str, scheme: str) -> _Query:
        """The query, made if need be, marked as changed now."""
        self._version += 1
        if query not in self._queries:
            about = {"name": name, "scheme": scheme, "workers": 0}
            self._queries[query] = _Query(about, "running", self._version)
            if len(self._queries) > QUERIES_KEPT:
                over = [q for q, held in self._queries.items() if held.state in ENDED]
                del self._queries[(over or list(self._queries))[0]]
        found = self._queries[query]
        found.changed = self._version
        return found


def _point(sight: Sight) -> list[float | None]:
    """One point of each line that the page draws, in the order of `LINES` in its script."""
    busiest = max(sight.busy_s, default=0.0)
    figures = (
        sight.ended_s,
        sight.max_over_mean,
        sight.stddev_percent,
        sight.messages_per_second,
        sight.seconds,
        sight.replication,
        busiest,
    )
    return [None if value is None else _short(value) for value in figures]


def _newest(sight: Sight) -> dict[str, Any]:
    hot = None
    if sight.hot is not None:
        hot = [[key.name, key.messages, key.workers] for key in sight.hot]
    plan = None
    if sight.plan is not None:
        plan = [sight.plan.keys, sight.plan.split, sight.plan.widest]
    return {
        "batch": sight.batch,
        "messages": sight.messages,
        "loads": list(sight.loads),
        "busy": [_short(value) for value in sight.busy_s],
        "hot": hot,
        "plan": plan,
    }


def _short(value: float) -> float | None:
    """As many digits as anybody sees; JSON knows finite numbers only."""
    if not math.isfinite(value):
        return None
    return round(value, 2) if abs(value) >= 1e4 else float(f"{value:.6g}")
