"""Planned graded choices: the learned split, its bound on copies, capacities, replanning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.graded_planned import PlannedGradedChoices
from skewless.schemes.parts.packing import repair
from skewless.schemes.parts.pouring import pour
from skewless.simulate.sources import Estimate, Sources
from skewless.streams import stream_of
from tests.naive import graded_planned as naive
from tests.test_laws import send


def zipf(z, messages, keys=2000, seed=0):
    stream = stream_of(f"zipf:z={z},keys={keys},messages={messages}")
    return np.concatenate([chunk.keys for chunk in stream.chunks(seed)])


def learn(scheme, plan, keys, sources=1):
    report = None
    for source in range(sources):
        own = np.ascontiguousarray(keys[source::sources])
        _, tally = send(scheme, plan, scheme.tally(plan, source), own)
        mine = scheme.report(plan, tally)
        report = mine if report is None else scheme.merge(report, mine)
    return scheme.replan(plan, report, Feedback.none(int(plan.workers[0])))


def pairs(keys, workers):
    return len(set(zip(keys.tolist(), workers.tolist(), strict=True)))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    z=st.floats(1.05, 3.0),
    workers=st.integers(1, 30),
    target=st.sampled_from([0.002, 0.01, 0.3]),
    source=st.integers(0, 9),
)
def test_the_deployed_plan_equals_the_twin(seed, z, workers, target, source):
    rng = np.random.default_rng(seed)
    keys = rng.zipf(z, 3000).astype(np.uint64) % np.uint64(200)
    capacities = rng.choice([1.0, 4.0], workers)
    scheme = PlannedGradedChoices(target=target)
    plan = learn(scheme, scheme.plan(workers, 5, capacities), keys)
    rates = capacities / capacities.mean()
    buckets, slots = naive.built(keys.tolist(), workers, 5, target, rates.tolist())
    out, _ = send(scheme, plan, scheme.tally(plan, source), keys)
    assert plan.buckets.tolist() == buckets
    assert out.tolist() == naive.deployed(keys.tolist(), buckets, slots, workers, 5, source)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(0.5, 100.0), min_size=1, max_size=40),
    workers=st.integers(1, 12),
    data=st.data(),
)
def test_pouring_fits_and_makes_at_most_one_copy_more_per_worker(weights, workers, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    slot = 0.005 * sum(weights) / workers
    rooms = rng.dirichlet(np.ones(workers)) * (sum(weights) + 1.01 * workers * slot)
    places = [np.unique(rng.integers(0, workers, 2)).astype(np.int32) for _ in weights]
    slots = pour(np.array(weights), places, rooms, slot)
    loads = np.zeros(workers)
    for weight, own in zip(weights, slots, strict=True):
        np.add.at(loads, own, weight / own.size)
        assert own.size == 1 or weight / own.size <= slot * (1 + 1e-9)
    assert (loads <= rooms + 1e-9).all()
    assert sum(np.unique(own).size for own in slots) <= len(weights) + workers - 1


def test_a_packing_within_its_limits_is_left_alone():
    weights, homes = np.array([4.0, 1.0, 1.0]), [0, 0, 1]
    limits = np.array([5.0, 1.0])
    assert repair(weights, homes, 2, 3, limits).tolist() == homes
    assert repair(weights, homes, 2, 3, np.array([4.0, 2.0])).tolist() == [0, 1, 1]


@pytest.mark.parametrize("z", [1.0, 1.5])
def test_what_was_learned_is_within_the_target_with_few_copies(z):
    workers, keys = 20, zipf(z, 200_000)
    scheme = scheme_of("graded-planned")
    plan = learn(scheme, scheme.plan(workers, 1), keys, sources=3)
    out, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    loads = np.bincount(out, minlength=workers)
    # Only the salts are left to chance: a worker's share of split keys varies by its root.
    assert loads.max() <= 1.01 * loads.mean() + 4 * np.sqrt(loads.mean())
    assert pairs(keys, out) <= np.unique(keys).size + workers - 1
    assert plan.head_workers.size <= 200 * workers + plan.head_keys.size
    assert scheme.table(plan).splits


def test_strong_workers_get_their_part():
    capacities = np.array([5.0] * 2 + [1.0] * 6)
    keys = zipf(1.2, 100_000)
    scheme = scheme_of("graded-planned")
    plan = learn(scheme, scheme.plan(8, 0, capacities), keys)
    out, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    busy = np.bincount(out, minlength=8) / capacities
    assert busy.max() <= 1.04 * keys.size / capacities.sum()


def test_costs_count_rather_than_messages():
    keys = zipf(1.1, 60_000)
    costs = np.where(keys % np.uint64(7) == 0, 20.0, 1.0)
    scheme = scheme_of("graded-planned")
    first = scheme.plan(10, 0)
    out, tally = np.empty(keys.size, np.int32), scheme.tally(first, 0)
    times = np.arange(float(keys.size))
    scheme.route(first, tally, keys, costs, times, out)
    plan = scheme.replan(first, scheme.report(first, tally), Feedback.none(10))
    scheme.route(plan, scheme.tally(plan, 0), keys, costs, times, out)
    loads = np.bincount(out, costs, minlength=10)
    assert loads.max() <= 1.04 * loads.mean()


def test_a_plan_made_anew_moves_little_where_nothing_changed():
    workers, keys = 20, zipf(1.2, 400_000)
    scheme = scheme_of("graded-planned:relearn=100000,half_life=1000000")
    plan = learn(scheme, scheme.plan(workers, 0), keys[:200_000])
    anew = learn(scheme, plan, keys[200_000:])
    distinct = np.unique(keys)
    before, _ = send(scheme, plan, scheme.tally(plan, 0), distinct)
    after, _ = send(scheme, anew, scheme.tally(anew, 0), distinct)
    assert np.count_nonzero(before != after) < 0.02 * distinct.size
    assert anew.known.total[0] > 300_000


def test_replanning_follows_hot_keys_that_change():
    keys = np.concatenate([zipf(1.3, 100_000), zipf(1.3, 200_000) + np.uint64(1)])
    worst = {}
    for spec in ("graded-planned:learn=50000", "graded-planned:learn=50000,relearn=50000"):
        out = Sources(scheme_of(spec), 10, 2, 0, Estimate()).route(keys)
        loads = np.bincount(out[200_000:], minlength=10)
        worst[spec] = loads.max() / loads.mean()
    once, again = worst.values()
    assert once > 1.2
    assert again < 1.06


def test_without_news_the_plan_stays_and_short_streams_have_one():
    scheme = scheme_of("graded-planned")
    plan = scheme.plan(5, 0)
    assert scheme.replan(plan, scheme.report(plan, scheme.tally(plan, 0)), Feedback.none(5)) is plan
    learned = learn(scheme, plan, np.array([9], np.uint64))
    assert not scheme.table(learned).splits
    only = learn(scheme, plan, np.full(5000, 9, np.uint64))
    out, _ = send(scheme, only, scheme.tally(only, 0), np.full(5000, 9, np.uint64))
    assert np.bincount(out, minlength=5).max() <= 1.1 * 1000


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("graded-planned:target=0", r"target is a share in \(0, 1\], not 0"),
        ("graded-planned:learn=0", "learn must be at least 1 message, not 0"),
        ("graded-planned:relearn=-1", "relearn must not be negative"),
        ("graded-planned:half_life=0", "half_life is at least 1 message"),
    ],
)
def test_mistakes_are_one_clear_sentence(spec, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        scheme_of(spec)
