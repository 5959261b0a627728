"""What balanced_map's timing wrapper charges each key, and where rows of known cost go."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.proactive.scheme import ProactiveReport
from skewless.sketch.count_min import CountMin, add_all
from skewless.spark.adapt.plans import empty_report
from skewless.spark.input.conform import declared_for_map
from skewless.spark.map import joining, timing
from skewless.spark.map.cost_routing import CostRouter
from skewless.spark.map.job import REPORT, MapJob
from skewless.spark.report.source import read_source_report

PROACTIVE = scheme_of("proactive")
SITES = "site string, n long"
DECLARED = declared_for_map(StructType().add("site", "string").add("n", "long"))


class Clock:
    """Time passes only when somebody says so."""

    def __init__(self, monkeypatch):
        self.now_s = 100.0
        monkeypatch.setattr(timing.time, "perf_counter", lambda: self.now_s)

    def sleep(self, seconds):
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def prepared(sites, costs=None):
    """One batch as a task gets it: rows, identity, key, expected cost, worker."""
    names, numbers = pa.array(sites, pa.string()), pa.array(range(len(sites)), pa.int64())
    hashed = pa.array(identities(names).view(np.int64))
    keys = pa.StructArray.from_arrays([names], names=["k0"])
    expected = pa.array(costs or [0.0] * len(sites))
    workers = pa.array([3] * len(sites), pa.int32())
    rows = pa.StructArray.from_arrays([names, numbers], names=["c0", "c1"])
    columns = ["row", "identity", "key", "cost", "worker"]
    whole = [rows, hashed, keys, expected, workers]
    return [pa.RecordBatch.from_arrays(whole, names=columns)]


def watched(function, batches, plan):
    """The batches that came out, and the matrices on the last row."""
    job = MapJob(function, ("site", "n"), DECLARED, True, plan, reports=True)
    out = list(job.run(iter(batches)))
    texts = [t for b in out for t in b[REPORT].to_pylist() if t is not None]
    assert len(texts) <= 1
    facts, report = read_source_report(texts[0], empty_report(PROACTIVE, plan))
    return out, facts, report


def matrices(plan, costs):
    """F and V of messages with known costs."""
    sketches = []
    for weights in (np.ones(len(costs)), np.array([cost for _, cost in costs])):
        sketch = CountMin(np.zeros(plan.known.shape[:2]), plan.hashes, np.zeros(1))
        add_all(sketch, identities(pa.array([site for site, _ in costs])), weights)
        sketches.append(sketch.counts)
    return ProactiveReport(np.stack(sketches, axis=-1))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda batches: None, "returned None: let it yield pyarrow.RecordBatch"),
        (lambda batches: list(batches), "returned a list: let it yield"),
        (lambda batches: (b.to_pylist() for b in batches), "yielded a list: let it yield"),
        (
            lambda batches: (b.select(["n"]) for b in batches),
            "yielded 1 column, but schema= declares 2",
        ),
        (
            lambda batches: (b.select(["n", "site"]) for b in batches),
            "a column 'site' of type int64, but schema= declares string",
        ),
    ],
)
def test_what_is_no_result_is_one_sentence(function, says):
    job = MapJob(function, ("site", "n"), DECLARED, False, None, False)
    with pytest.raises(SkewlessError) as caught:
        list(job.run(iter(prepared(["a", "b"]))))
    assert says in str(caught.value)


def test_each_key_is_charged_what_its_rows_took_and_nothing_else(clock):
    plan = PROACTIVE.plan(2, 0)
    costs = {"a": 0.004, "b": 0.001, "c": 0.030}
    slices = []

    def work(batches):
        clock.sleep(60)  # loads a model
        for batch in batches:
            (site,) = set(batch["site"].to_pylist())
            slices.append(batch.num_rows)
            clock.sleep(costs[site] * batch.num_rows)
            yield batch
        clock.sleep(60)  # says goodbye

    sites = list("abcabbcabab") * 3
    _, facts, report = watched(work, prepared(sites), plan)
    expected = matrices(plan, [(site, costs[site]) for site in sites])
    np.testing.assert_allclose(report.cells, expected.cells)
    assert set(slices) == {1}
    assert facts["worker"][2:4] == [33, 33]
    assert facts["worker"][5] == pytest.approx(sum(costs[site] for site in sites))


def test_time_that_spark_takes_is_nobodys(clock, monkeypatch):
    monkeypatch.setattr(joining, "_ROWS", 1)
    job = MapJob(iter, ("site", "n"), DECLARED, False, None, reports=True)
    out = []
    for batch in job.run(iter(prepared(["a"] * 5))):
        out.append(batch)
        clock.sleep(9)
    facts, _ = read_source_report(out[-1][REPORT].to_pylist()[-1], ())
    assert len(out) > 1
    assert facts["worker"][5] == 0


def test_a_quick_function_gets_whole_batches_in_which_all_rows_cost_the_same(clock):
    plan = PROACTIVE.plan(2, 0)
    slices = []

    def work(batches):
        for batch in batches:
            slices.append(batch.num_rows)
            clock.sleep(1e-5)  # whatever is in it
            yield batch

    batches = [prepared([f"s{i}" for i in range(4000)])[0] for _ in range(4)]
    out, _, report = watched(work, batches, plan)
    assert slices[-1] == 4000
    assert all(b.num_rows >= 4000 for b in out)
    counts, costs = report.cells[0].sum(axis=0)
    assert counts == 16000
    assert costs == pytest.approx(1e-5 * len(slices))
    free = watched(iter, batches, plan)[2].cells
    assert (free[..., 1] > 0).sum() == (free[..., 0] > 0).sum()


def test_a_slice_holds_one_key_where_it_can(clock):
    slices = []

    def work(batches):
        for batch in batches:
            slices.append(batch["site"].to_pylist())
            clock.sleep(1e-4 * batch.num_rows)
            yield batch

    sites = ["a", "b"] * 200 + [f"rare {i}" for i in range(40)]
    watched(work, prepared(sites), PROACTIVE.plan(2, 0))
    hot = [s for s in slices if {"a", "b"} & set(s)]
    assert max(map(len, slices)) == 10
    assert sum(len(set(s)) > 1 for s in hot) <= 4
    assert Counter(site for s in slices for site in s) == Counter(sites)


@pytest.mark.parametrize(("by_cost", "order"), [(True, "bbddaac"), (False, "abacdbd")])
def test_rows_expected_to_be_cheap_go_first(by_cost, order):
    costs = {"a": 3.0, "b": 1.0, "c": 9.0, "d": 2.0}
    batches = prepared(list("abacdbd"), [costs[site] for site in "abacdbd"])
    job = MapJob(iter, ("site", "n"), DECLARED, by_cost, None, reports=False)
    out = [site for batch in job.run(iter(batches)) for site in batch.column(0).to_pylist()]
    assert "".join(out) == order


def test_a_function_need_not_take_or_give_all_rows(clock):
    def first_only(batches):
        clock.sleep(1)
        batch = next(batches)
        clock.sleep(2)
        next(batches)
        yield batch

    plan = PROACTIVE.plan(2, 0)
    out, _, report = watched(first_only, prepared(["a"] * 9), plan)
    assert sum(b.num_rows for b in out) == 1
    np.testing.assert_allclose(report.cells, matrices(plan, [("a", 2.0)]).cells)
    nothing = MapJob(
        lambda slices: (s for s in slices if not s), ("site", "n"), DECLARED, True, plan, True
    )
    assert list(nothing.run(iter(prepared(["a"])))) == []


def test_a_filter_that_keeps_nothing_in_the_end_reports_all_the_same(clock, monkeypatch):
    monkeypatch.setattr(joining, "_ROWS", 1)

    def early(batches):
        for batch in batches:
            clock.sleep(1)
            yield batch.filter(pc.less(batch["n"], 2))

    plan = PROACTIVE.plan(2, 0)
    out, facts, report = watched(early, prepared(["a"] * 5), plan)
    assert [batch.num_rows for batch in out] == [1, 1]
    assert facts["worker"][2:4] == [5, 2]
    np.testing.assert_allclose(report.cells, matrices(plan, [("a", 1.0)] * 5).cells)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 5))
def test_the_dearest_rows_are_dealt_first_each_to_who_has_least(keys, workers):
    """Against a slow twin with the costs themselves: six keys do not collide in 544 columns."""
    costs = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    scheme = scheme_of("proactive:epsilon=0.005")
    first = scheme.plan(workers, 0)
    every = identities(pa.array(range(6), pa.int64()))
    sketches = [CountMin(np.zeros(first.known.shape[:2]), first.hashes, np.zeros(1)) for _ in "FV"]
    for sketch, weights in zip(sketches, (np.ones(6), np.array(costs)), strict=True):
        add_all(sketch, every, weights)
    report = ProactiveReport(np.stack([s.counts for s in sketches], axis=-1))
    plan = scheme.replan(first, report, Feedback.none(workers))
    chosen, expected_costs = CostRouter(scheme, plan, 0).route(every[keys].view(np.int64))

    ends = [worker * sum(costs) / 6 / workers for worker in range(workers)]
    expected = {}
    for row in sorted(range(len(keys)), key=lambda row: -costs[keys[row]]):
        expected[row] = ends.index(min(ends))
        ends[expected[row]] += costs[keys[row]]
    assert chosen.tolist() == [expected[row] for row in range(len(keys))]
    np.testing.assert_allclose(expected_costs, [costs[key] for key in keys])


def test_a_key_never_seen_is_expected_to_cost_what_rare_keys_do():
    seen = [("hot", 10.0)] * 100 + [(f"rare {i}", 1.0) for i in range(5)]
    scheme = scheme_of("proactive:epsilon=0.005")
    first = scheme.plan(2, 0)
    plan = scheme.replan(first, matrices(first, seen), Feedback.none(2))
    keys = identities(pa.array(["hot", "rare 1", "never seen"])).view(np.int64)
    np.testing.assert_allclose(CostRouter(scheme, plan, 0).route(keys)[1], [10.0, 1.0, 1.0])


def test_without_known_costs_rows_go_round_in_the_order_of_arrival():
    router = CostRouter(PROACTIVE, PROACTIVE.plan(3, 0), 1)
    keys = identities(pa.array(["b", "a", "c", "a"])).view(np.int64)
    workers = [router.route(keys)[0].tolist() for _ in range(2)]
    assert workers == [[1, 2, 0, 1], [2, 0, 1, 2]]
