"""What was stored or sent: packed arrays, plans, reports, models, the facts in front of a state."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skewless.apps.learning import Learned, LearningFolder
from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.spark.adapt.facts import StateFacts
from skewless.spark.join.kinds import kind_of
from skewless.spark.join.plan import Choices, JoinPlan, make_plan
from skewless.spark.join.sizes import Sizes
from skewless.spark.report.codec import UnreadableError, pack, unpack
from skewless.spark.report.source import source_report, source_reports
from skewless.spark.routing.plan import Plan
from tests.fuzz_inputs.mutate import mutated_bytes, mutated_json
from tests.fuzz_inputs.trial import Trials

SCHEMES = ("d-choices", "dynamic", "distribution-aware", "graded", "partial", "proactive")
FACTS = StateFacts(("k string",), ("Count()", "Sum(x)"))
Reading = Callable[[bytes], object]


def learned(spec: str) -> tuple[Any, Any, Any]:
    """A scheme, its plan after some messages, and a source's report."""
    scheme = scheme_of(spec)
    plan = scheme.plan(4, 1)
    tally = scheme.reserve(scheme.tally(plan, 0), 200)
    keys = np.random.default_rng(1).zipf(1.5, 200).astype(np.uint64)
    scheme.send(plan, tally, keys, np.arange(200.0), np.empty(200, np.int32))
    report = scheme.report(plan, tally)
    return scheme, scheme.replan(plan, report, Feedback.none(4)), report


def join_plan() -> JoinPlan:
    rows = np.array([1000.0, 10.0])
    even = np.full(4, 50.0)
    sizes = Sizes(
        partitions=4, left_rows=1210.0, right_rows=210.0, left_nulls=5.0, right_nulls=0.0,
        identities=np.array([3, 9], np.uint64), hashes=np.array([7, -8], np.int64),
        names=("hot", "other"), left=rows, right=rows / 10, cold_left=even, cold_right=even,
        cold_results=even,
    )  # fmt: skip
    return make_plan(sizes, kind_of("inner"), (("k", "k"),), ("string",), Choices())


class Stored:
    """Valid bytes of each kind, and how they are read back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kinds: list[tuple[bytes, Reading]] = [
            (join_plan().to_json().encode(), self._join_plan),
            (FACTS.sealed(b"state"), FACTS.opened),
            (self._model(), self._learned),
        ]
        for spec in SCHEMES:
            scheme, plan, report = learned(spec)
            packed = pack({"format": 1, "source": 2, "attempt": 3}, plan, report)
            self.kinds.append((packed, self._unpacking(plan, report)))
            text = source_report({"source": 2, "attempt": 3}, report).encode()
            self.kinds.append((text, self._reporting(report)))
            Plan(scheme, 4, 1, ("k string",), 200, 1.0, plan).save(folder / "plan")
            self.kinds.append(((folder / "plan").read_bytes(), self._plan))

    def _unpacking(self, plan: Any, report: Any) -> Reading:
        return lambda data: unpack(data, plan, report)

    def _reporting(self, report: Any) -> Reading:
        return lambda data: source_reports([data.decode("latin-1")], report)

    def _plan(self, data: bytes) -> None:
        (self.folder / "plan").write_bytes(data)
        plan = Plan.load(self.folder / "plan")
        repr(plan), plan._repr_html_()
        tally = plan.scheme.tally(plan.arrays, 0)
        assert tally is not None

    def _join_plan(self, data: bytes) -> None:
        (self.folder / "join").write_bytes(data)
        plan = JoinPlan.load(self.folder / "join")
        plan.describe(), repr(plan)

    def _model(self) -> bytes:
        keeper = LearningFolder(str(self.folder / "model"), {"label": "x"})
        table = pa.table({"feature": ["a", "b"], "n": [1.0, 2.0]})
        keeper.keep(Learned(3, table, {"history": [{"tested": 1, "right": 1}]}))
        return (self.folder / "model" / "3.arrow").read_bytes()

    def _learned(self, data: bytes) -> None:
        (self.folder / "model" / "3.arrow").write_bytes(data)
        LearningFolder(str(self.folder / "model"), {"label": "x"}).newest()


def fuzz_stored(drawn: random.Random, count: int, folder: Path) -> Trials:
    """Each kind with changed bytes, or where it holds JSON, with changed values."""
    trials, stored = Trials("codec, plans, reports, models"), Stored(folder)
    for _ in range(count):
        data, read = drawn.choice(stored.kinds)
        if data[:1] == b"{" and drawn.random() < 0.7:
            data = json.dumps(mutated_json(json.loads(data), drawn)).encode()
        elif data[:2] != b"PK" and drawn.random() < 0.3 and _is_report(data):
            inside = mutated_bytes(zlib.decompress(base64.b64decode(data)), drawn)
            data = base64.b64encode(zlib.compress(inside))
        else:
            data = mutated_bytes(data, drawn)

        def act(read: Reading = read, data: bytes = data) -> None:
            try:
                read(data)
            except UnreadableError as error:  # whoever asked turns it into a sentence
                raise SkewlessError(f"It is {error}.") from error

        trials.run(act, (read, data[:100]))
    return trials


def _is_report(data: bytes) -> bool:
    return data[:2] in (b"eA", b"eJ", b"eN")  # zlib's first byte in base 64
