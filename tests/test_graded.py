"""Graded choices: its bound, its memory, cost and capacities, drift."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless
from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import Feedback, loops
from skewless.schemes.graded import PLACES, GradedChoices
from skewless.schemes.parts.own_workers import LOOKS, POOL, empty_places, least_loaded, remember
from skewless.schemes.parts.sums import GAIN
from skewless.simulate.balance import Case, balance_all
from skewless.simulate.queue.run import Cluster, queue
from skewless.sketch.recent import add, recent
from tests.naive import graded as naive
from tests.test_laws import send, streams


def weighted(scheme, plan, keys, weights):
    tally = scheme.tally(plan, 0)
    out = np.empty(keys.size, np.int32)
    times = np.arange(keys.size, dtype=np.float64)
    scheme.route(plan, tally, keys, np.asarray(weights, np.float64), times, out)
    return out, tally


def within_the_bound(scheme, out, workers):
    """Whether no prefix of a source's route exceeds what is promised of every stream."""
    loads = np.zeros(workers)
    for number, worker in enumerate(out, 1):
        loads[worker] += 1
        mean = number / workers
        assert loads.max() / mean - 1 < scheme.excess(mean, workers) + 1e-9


@settings(max_examples=40)
@given(
    keys=streams,
    workers=st.integers(1, 40),
    target=st.sampled_from([0.001, 0.01, 0.3]),
    half_life=st.sampled_from([1.0, 30.0, 8000.0]),
    seed=st.integers(0, 999),
)
def test_no_source_ever_loads_a_worker_beyond_its_bound(keys, workers, target, half_life, seed):
    scheme = GradedChoices(target=target, half_life=half_life)
    plan = scheme.plan(workers, seed)
    out, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    within_the_bound(scheme, out.tolist(), workers)


@settings(max_examples=30)
@given(
    workers=st.integers(2, 16),
    keys=st.integers(1, 60),
    half_life=st.sampled_from([10.0, 8000.0]),
    whims=st.lists(st.integers(0, 7), min_size=100, max_size=400),
)
def test_an_adversary_who_sees_the_routes_cannot_break_the_bound(workers, keys, half_life, whims):
    """It sends keys that went to the fullest worker last, or never seen ones, in runs or mixed."""
    scheme = GradedChoices(half_life=half_life)
    plan = scheme.plan(workers, 0)
    tally = scheme.tally(plan, 0)
    loads, went, out, fresh = np.zeros(workers), {}, [], 10**6
    for whim in whims:
        fullest = [key for key, worker in went.items() if worker == loads.argmax()]
        if whim < 4 and fullest:
            key = fullest[whim % len(fullest)]
        elif whim < 6:
            key = whim * 7919 % keys
        else:
            key, fresh = fresh, fresh + 1
        for _ in range(1 + whim % 3):
            routed, tally = send(scheme, plan, tally, np.array([key], np.uint64), start=len(out))
            went[key] = int(routed[0])
            loads[routed[0]] += 1
            out.append(int(routed[0]))
    within_the_bound(scheme, out, workers)


def test_costs_that_are_known_are_shared_out_evenly():
    cluster = Cluster(10, 0.9, costs="geometric:min=1,max=200,values=8")
    busy = np.array(queue("zipf:z=1.0,keys=2000,messages=100000", "graded", cluster).utilisation)
    assert busy.max() < 1.02 * busy.mean()


@settings(max_examples=30)
@given(keys=streams, workers=st.integers(1, 12), seed=st.integers(0, 99), data=st.data())
def test_costs_and_capacities_equal_the_naive_twin(keys, workers, seed, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    weights = rng.choice([1.0, 2.0, 8.0], keys.size)
    capacities = rng.choice([1.0, 3.0], workers)
    scheme = GradedChoices()
    plan = scheme.plan(workers, seed, capacities)
    out, tally = weighted(scheme, plan, keys, weights)
    rates = capacities / capacities.mean()
    expected, loads = naive.trace(
        scheme, keys.tolist(), weights.tolist(), rates.tolist(), workers, seed
    )
    assert out.tolist() == expected
    assert tally.loads == pytest.approx(loads)


@pytest.mark.parametrize("workers", [1, 2, 5, 12, 70])
def test_messages_that_weigh_nothing_or_much_equal_the_naive_twin(workers):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        keys = rng.integers(0, 20, 400).astype(np.uint64)
        weights = rng.choice([0.0, 1.0, 2.0, 8.0], keys.size)
        capacities = rng.choice([1.0, 3.0], workers)
        scheme = GradedChoices()
        out, tally = weighted(scheme, scheme.plan(workers, seed, capacities), keys, weights)
        rates = capacities / capacities.mean()
        expected, loads = naive.trace(scheme, keys.tolist(), weights.tolist(), rates, workers, seed)
        assert out.tolist() == expected
        assert tally.loads == pytest.approx(loads)


def bursts(seed, messages, ballast):
    """One key with this share of the stream, and others that come in bursts of up to 200."""
    rng = np.random.default_rng(seed)
    others = np.repeat(rng.integers(1, 60, messages // 50), rng.integers(1, 200, messages // 50))
    return identities(np.where(rng.random(messages) < ballast, 0, others[:messages]))


@pytest.mark.parametrize("ballast", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("workers", [3, 16, 80, 300])
def test_bursts_equal_the_naive_twin(ballast, workers):
    keys = bursts(1, 20_000, ballast)
    scheme = GradedChoices()
    out, tally = weighted(scheme, scheme.plan(workers, 0), keys, np.ones(keys.size))
    assert out.tolist() == naive.route(scheme, keys.tolist(), workers, 0, 0)
    assert tally.moved.keys.any()


def test_keys_of_thousands_of_workers_equal_the_naive_twin():
    keys = bursts(5, 6_000, 0.5)
    scheme = GradedChoices()
    out, tally = weighted(scheme, scheme.plan(4500, 0), keys, np.ones(keys.size))
    assert out.tolist() == naive.route(scheme, keys.tolist(), 4500, 0, 0)
    assert max(len(own) for own in lists(tally.moved).values()) > 1000


def test_what_keys_used_takes_little_memory_whatever_the_number_of_workers():
    assert sum(part.nbytes for part in empty_places(PLACES, 1000)) < 2 << 20
    assert sum(part.nbytes for part in empty_places(PLACES, 100_000)) < 8 << 20


def lists(places):
    """Of each place that a key has: its workers, as the pool has them."""
    found = {}
    for number in np.flatnonzero(places.keys[:, 0]):
        start, length = int(places.keys[number, 0]) & 0xFFFFFFFF, int(places.keys[number, 1]) >> 32
        own = places.pool[start : start + length].tolist()
        again = places.pool[start + length : start + length + LOOKS - 1].tolist()
        assert again == (own * LOOKS)[: LOOKS - 1]
        assert start + length + LOOKS - 1 <= int(places.taken[0])
        found[int(number)] = own
    return found


@pytest.mark.parametrize("workers", [1, 2, 5, 8, 9])
@pytest.mark.parametrize("room", [1, POOL])
def test_every_place_leads_to_workers_even_if_nobody_has_it(workers, room):
    """Nothing else keeps a message's look at them within the loads."""
    keys = bursts(7, 5_000, 0.3)
    scheme = GradedChoices()
    plan = scheme.plan(workers, 0)
    moved = empty_places(PLACES, workers, room)
    tally = scheme.tally(plan, 0)._replace(moved=moved)
    scheme.send(plan, tally, keys, np.zeros(keys.size), np.empty(keys.size, np.int32))
    starts = (moved.keys & np.uint64(0xFFFFFFFF)).sum(axis=1).astype(np.int64)
    assert moved.pool[starts[:, None] + np.arange(LOOKS)].max() < workers


@pytest.mark.parametrize("workers", [2, 20, 500])
def test_lists_stay_whole_when_they_move_to_more_room_and_when_all_are_given_up(workers):
    rng = np.random.default_rng(workers)
    places = empty_places(8, workers, room=64)
    expected, given_up = {}, 0
    for _ in range(5_000):
        number, taken = int(rng.integers(8)), int(places.taken[0])
        tag, worker = 1 + int(rng.random() < 0.01), int(rng.integers(workers))
        remember(places, np.uint64(number), np.uint64(tag << 33 | number), 1, worker)
        if places.taken[0] < taken:
            expected, given_up = {}, given_up + 1
        if expected.get(number, (None,))[0] != tag:
            expected[number] = tag, [1]
        own = expected[number][1]
        own += [worker] if worker not in own else []
        assert lists(places) == {number: own for number, (_, own) in expected.items()}
        assert places.taken[0] <= places.pool.size
    assert given_up


@pytest.mark.parametrize("load", [np.nan, -np.nan, np.inf])
def test_the_least_loaded_is_a_worker_even_if_loads_are_not_numbers(load):
    assert 0 <= least_loaded.py_func(np.full(3, load)) < 3  # as it is written: bounds are checked


def test_keys_whose_lists_were_given_up_are_even_all_the_same():
    keys = bursts(6, 50_000, 0.3)
    scheme = GradedChoices()
    plan = scheme.plan(100, 0)
    tally = scheme.tally(plan, 0)._replace(moved=empty_places(PLACES, 100, room=1))
    out = np.empty(keys.size, np.int32)
    times = np.arange(keys.size, dtype=np.float64)
    scheme.route(plan, tally, keys, np.ones(keys.size), times, out)
    within_the_bound(scheme, out.tolist(), 100)


def test_routing_in_blocks_is_choosing_one_by_one():
    keys = bursts(4, 5_000, 0.3)
    scheme = GradedChoices()
    plan = scheme.plan(7, 0)
    blocks, _ = weighted(scheme, plan, keys, np.ones(keys.size))
    one_by_one = np.empty(keys.size, np.int32)
    loop = loops.specialise(loops.route, GradedChoices)
    times = np.arange(keys.size, dtype=np.float64)
    loop(plan, scheme.tally(plan, 0), keys, np.ones(keys.size), times, one_by_one)
    assert blocks.tolist() == one_by_one.tolist()


def test_a_burst_beside_much_ballast_is_not_spread_over_all_workers():
    keys = bursts(2, 200_000, 0.8)
    others = keys != identities(np.zeros(1, np.int64))
    out = skewless.route(keys, "graded", 10)
    loads = np.bincount(out[100_000:], minlength=10)
    assert loads.max() / loads.mean() < 1.01
    pairs = np.unique(np.stack([keys[others], out[others]]), axis=1).shape[1]
    assert pairs / np.unique(keys[others]).size < 3


def test_strong_workers_take_more_and_costs_are_evened_out():
    rng = np.random.default_rng(1)
    keys = identities(rng.zipf(1.3, 300_000) % 5000)
    costs = 1.0 + (keys % np.uint64(64)).astype(np.float64)
    capacities = np.array([5.0] * 3 + [1.0] * 7)
    scheme = GradedChoices()
    out, _ = weighted(scheme, scheme.plan(10, 0, capacities), keys, costs)
    busy = np.bincount(out, costs, minlength=10) / capacities
    assert busy.max() / busy.mean() < 1.01


@pytest.mark.parametrize("z", [0.8, 1.2, 1.5, 2.0])
@pytest.mark.parametrize("sources", [1, 5])
def test_the_target_is_met_with_a_fraction_of_the_copies_of_w_choices(z, sources):
    stream = f"zipf:z={z},keys=10000,messages=1000000"
    cases = [Case(s, 50, sources) for s in ("graded", "w-choices")]
    graded, w_choices = balance_all(stream, cases)
    assert graded.percent_imbalance < 1
    assert graded.replication - 1 <= 0.5 * (w_choices.replication - 1)


@pytest.mark.parametrize(("messages", "keys"), [(135_000, 90_000), (100_000, 100_000)])
def test_keys_none_of_which_is_hot_are_evened_out_too(messages, keys):
    stream = f"zipf:z=0,keys={keys},messages={messages}"
    cases = [Case(spec, 100, 5) for spec in ("graded", "w-choices")]
    ours, theirs = (result.percent_imbalance for result in balance_all(stream, cases))
    assert ours <= max(1.0, 1.2 * theirs)


def test_drift_is_followed():
    stream = "drift:z=1.2,keys=20000,messages=1000000,period=100000"
    graded, partial = balance_all(stream, [Case(s, 50, 5) for s in ("graded", "partial")])
    assert graded.percent_imbalance < 1
    assert graded.replication < partial.replication


def test_the_second_half_is_as_even_as_the_whole():
    keys = identities(np.random.default_rng(3).zipf(1.4, 600_000) % 20_000)
    out = skewless.route(keys, "graded", 20, sources=3)
    second = np.bincount(out[300_000:], minlength=20)
    assert second.max() / second.mean() < 1.01


def test_a_missed_target_is_told_with_what_it_takes():
    few, many = (
        balance_all(f"zipf:z=1.0,keys=5000,messages={n}", [Case("graded", 50, 5)])[0]
        for n in (20_000, 1_000_000)
    )
    assert few.percent_imbalance > 1
    assert "above the target of 1.01: a source sends each worker 80 messages" in str(few.remark)
    assert many.percent_imbalance < 1
    assert many.remark is None


def test_a_half_life_too_short_for_the_target_is_told():
    remark = GradedChoices(half_life=100).remark(np.array([1100, 900]) * 100, 1)
    assert "a half-life of 100 messages per worker is too short for it" in str(remark)


def test_the_half_life_that_is_told_is_what_so_many_workers_leave_of_10_million_messages():
    loads = np.full(40_000, 100)
    loads[0] = 150
    remark = GradedChoices().remark(loads, 1)
    assert "a half-life of 250 messages per worker is too short for it" in str(remark)


def test_a_source_whose_first_message_comes_after_a_probe_evens_out_too():
    case = Case("graded", 5, 20, "probe:7")
    [result] = balance_all("zipf:z=1.0,keys=1000,messages=20000", [case])
    assert result.percent_imbalance < 1


def test_a_load_counts_from_the_third_message_on():
    counts = recent()
    hashed = np.uint64(0x1234567890ABCDEF)
    assert [add(counts, hashed, 1.0) for _ in range(4)] == [0.0, 0.0, 1.0, 2.0]


def test_dividing_down_changes_no_route():
    keys = bursts(3, 20_000, 0.3)
    scheme = GradedChoices(half_life=20)  # 2,000 messages per worker: the gain passes its limit
    out, tally = weighted(scheme, scheme.plan(10, 0), keys, np.ones(keys.size))
    assert tally.sums[GAIN] < 2.0**60
    assert out.tolist() == naive.route(scheme, keys.tolist(), 10, 0, 0)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_a_half_life_far_shorter_than_a_round_leaves_all_loads_finite(workers):
    keys = bursts(7, 20_000, 0.3)
    scheme = GradedChoices(half_life=1)  # with one worker, the gain grows by 2⁶⁴ in a round
    out, tally = weighted(scheme, scheme.plan(workers, 0), keys, np.ones(keys.size))
    assert np.isfinite(tally.loads).all()
    assert np.isfinite(tally.counts).all()
    within_the_bound(scheme, out[:2_000].tolist(), workers)


def test_the_gain_stays_small_where_a_round_is_many_half_lives():
    keys = bursts(3, 20_000, 0.3)
    scheme = GradedChoices(half_life=1)  # with one worker the gain grows by 2⁶⁴ in a round
    plan = scheme.plan(1, 0)
    _, tally = weighted(scheme, plan, keys, np.ones(keys.size))
    assert tally.sums[GAIN] <= 2.0**60
    following = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(1))
    assert following.start.tolist() == [0]


@pytest.mark.parametrize("weight", [0.5, 0.25, 0.125])
def test_loads_may_fade_to_the_least_float_there_is(weight):
    scheme = GradedChoices(half_life=1)
    weights = np.zeros(1_300)
    weights[:64] = weight
    out, tally = weighted(scheme, scheme.plan(1, 0), np.zeros(1_300, np.uint64), weights)
    assert not out.any()
    assert 0 <= tally.loads[0] < 1e-300


@pytest.mark.parametrize(
    "parameters", [{"target": 0}, {"target": 1.5}, {"half_life": 0}, {"half_life": 1e9}]
)
def test_bad_parameters_are_one_sentence(parameters):
    with pytest.raises(SkewlessError, match="graded:"):
        GradedChoices(**parameters)
