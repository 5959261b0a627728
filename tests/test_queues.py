"""The queueing simulator against an event-by-event twin, and against theory."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless
from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.schemes.graded_planned import PlannedGradedChoices
from skewless.simulate.queue.costs import costs_of, poisson_times
from skewless.simulate.queue.run import Cluster, queue
from skewless.simulate.queue.series import LatencyHistogram
from skewless.simulate.queue.wire import new_wire, receive, send
from skewless.sketch.key_table import key_table
from skewless.streams import Chunk, Stream, stream_of
from tests.naive import queues as naive

SCHEMES = [
    "key",
    "shuffle",
    "potc",
    "consistent:slot=20,virtual=3",
    "consistent:slot=15,virtual=4,settle=true,inner=partial",
]


@dataclass(frozen=True)
class Listed(Stream):
    """A stream of given keys, in chunks of a given size."""

    keys: tuple[int, ...]
    size: int = 10**6
    name: ClassVar[str] = "listed"

    def produce(self, seed, source_column):
        array = np.array(self.keys, np.uint64)
        for start in range(0, array.size, self.size):
            yield Chunk(array[start : start + self.size], None)


def skewed(seed, count, keys=40):
    return tuple(int(k) for k in np.random.default_rng(seed).zipf(1.4, count) % keys)


@settings(max_examples=25)
@given(
    scheme=st.sampled_from(SCHEMES),
    seed=st.integers(0, 1000),
    count=st.integers(2, 700),
    workers=st.integers(1, 6),
    sources=st.integers(1, 4),
    load=st.floats(0.3, 2.0),
    delay=st.floats(0, 30),
    costs=st.sampled_from(["constant:value=2", "evenly:min=1,max=9,values=5", "exponential"]),
    arrivals=st.sampled_from(["even", "poisson"]),
    merge=st.sampled_from([(0, 0), (40.0, 0.3)]),
    data=st.data(),
)
def test_equals_the_event_by_event_twin(
    scheme, seed, count, workers, sources, load, delay, costs, arrivals, merge, data
):
    speeds = st.lists(st.floats(0.2, 5), min_size=workers, max_size=workers)
    capacities = data.draw(speeds)
    at = sorted(data.draw(st.sets(st.integers(1, count), max_size=2)))
    changes = [(message, data.draw(speeds)) for message in at]
    keys = skewed(seed, count)
    cluster = Cluster(
        workers, load, sources, capacities, changes, costs, arrivals, delay, merge[0], merge[1]
    )
    seen = queue(Listed(keys, 100), scheme, cluster, seed=seed)

    each = costs_of(costs).of(np.array(keys, np.uint64), 0, seed)
    mean = costs_of(costs).average(Listed(keys), seed)
    interval = mean / (load * sum(capacities))
    times = np.arange(count) * 1.0
    if arrivals == "poisson":
        times = poisson_times(0, count, 0.0, seed)
    twin = naive.run(
        scheme_of(scheme),
        keys,
        each.tolist(),
        times.tolist(),
        [[c * interval for c in stage] for stage in (capacities, *(c for _, c in changes))],
        at,
        delay / interval,
        sources,
        seed,
        (merge[0] / interval, merge[1]),
    )
    assert seen.balance.loads == np.bincount(twin.workers, minlength=workers).tolist()
    assert seen.mean_latency == pytest.approx(np.mean(twin.latencies) * interval)
    assert seen.max_latency == pytest.approx(max(twin.latencies) * interval)
    ordered = np.sort(twin.latencies) * interval
    p99 = ordered[int(np.ceil(0.99 * count)) - 1]
    assert seen.p99_latency == pytest.approx(p99, rel=0.01)
    assert seen.max_queue == max(twin.queues)
    assert seen.queued == twin.queued
    assert seen.control_messages == twin.signals
    assert seen.utilisation == pytest.approx([b / times[-1] for b in twin.busy], abs=1e-9)
    if hasattr(seen.tallies[0], "owners"):
        for ours, theirs in zip(seen.tallies, twin.tallies, strict=True):
            assert ours.inner.loads.tolist() == theirs.inner.loads.tolist()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_chunks_of_any_size_give_the_same_result(scheme):
    keys = skewed(3, 3000)
    cluster = Cluster(4, 0.9, 3, [1, 2, 3, 4], [(1000, [4, 3, 2, 1])], "exponential", "poisson", 5)
    small = queue(Listed(keys, 7), scheme, cluster).as_json()
    large = queue(Listed(keys), scheme, cluster).as_json()
    for result in (small, large):
        del result["messages_per_second"], result["stream"]
    assert small == large


@pytest.mark.parametrize("scheme", ["off-greedy", "distribution-aware:learn=5000"])
def test_a_scheme_that_learns_routes_as_it_does_without_time(scheme):
    stream = stream_of("zipf:z=1,keys=500,messages=20000")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(0)])
    seen = queue(stream, scheme, Cluster(6, 0.8, 3))
    routed = skewless.route(keys, scheme, 6, sources=3)
    assert seen.balance.loads == np.bincount(routed, minlength=6).tolist()


def test_a_stream_that_ends_while_a_scheme_learns_is_one_sentence():
    with pytest.raises(SkewlessError, match="learns from: give a longer stream"):
        queue("zipf:z=1,keys=50,messages=500", "distribution-aware", Cluster(3, 0.5))


@pytest.mark.parametrize("load", [0.5, 0.8])
@pytest.mark.parametrize(("costs", "half"), [("constant", 0.5), ("exponential:mean=1", 1.0)])
def test_mean_waiting_time_is_that_of_theory(load, costs, half):
    """Pollaczek and Khinchine: load ÷ (1 − load), halved when service takes always as long."""
    cluster = Cluster(1, load, costs=costs, arrivals="poisson")
    seen = queue("zipf:z=0,keys=10,messages=2000000", "key", cluster)
    assert seen.mean_latency - 1 == pytest.approx(half * load / (1 - load), rel=0.03)
    assert seen.utilisation[0] == pytest.approx(load, rel=0.01)


def test_latencies_of_an_exponential_server_are_exponential():
    cluster = Cluster(1, 0.6, costs="exponential:mean=2", arrivals="poisson")
    seen = queue("zipf:z=0,keys=10,messages=2000000", "key", cluster)
    assert seen.p50_latency == pytest.approx(2 / 0.4 * np.log(2), rel=0.03)
    assert seen.p99_latency == pytest.approx(2 / 0.4 * np.log(100), rel=0.05)


def test_littles_law_and_conservation():
    cluster = Cluster(5, 0.7, 3, costs="exponential", arrivals="poisson")
    seen = queue("zipf:z=0.3,keys=1000,messages=500000", "partial", cluster)
    rate = seen.balance.messages / seen.elapsed
    assert 5 * seen.mean_queue == pytest.approx(rate * seen.mean_latency, rel=0.01)
    assert seen.finished + seen.queued == seen.balance.messages == sum(seen.balance.loads)
    assert seen.throughput == pytest.approx(seen.finished / seen.elapsed)


def test_above_full_load_the_queue_grows_with_the_stream():
    short, long = (
        queue(f"zipf:z=0,keys=9,messages={n}", "shuffle", Cluster(4, 2.0))
        for n in (10_000, 100_000)
    )
    assert short.queued == pytest.approx(5_000, rel=0.01)
    assert long.queued == pytest.approx(50_000, rel=0.01)
    assert long.throughput == pytest.approx(4, rel=0.01)
    assert long.utilisation == pytest.approx([1] * 4, abs=0.01)


def test_a_change_of_capacity_counts_for_what_was_queued_before_it():
    """100 messages come at once, as good as; the worker is ten times as fast from message 50 on."""
    cluster = Cluster(1, 2.0, changes=[(50, [10.0])])
    seen = queue(Listed((1,) * 100), "key", cluster)
    # 25 time units of one second each, then one of ten each: all but the last are done by the end.
    assert seen.max_queue == 26
    assert seen.max_latency == pytest.approx(12.5, abs=1.0)


def test_checkpoints_add_up_to_the_whole_and_stay_bounded():
    cluster = Cluster(3, 0.9, capacities=[1, 2, 3])
    seen = queue("zipf:z=1,keys=100,messages=200000", "partial", cluster)
    series = seen.series
    assert series.messages.size <= 513
    assert series.messages[-1] == 200_000
    assert series.queues[-1].sum() == seen.queued
    assert series.busy[-1] / seen.elapsed == pytest.approx(seen.utilisation)
    weights = np.diff(series.times, prepend=0)[:, None]
    whole = (series.utilisations() * weights).sum(axis=0) / seen.elapsed
    assert whole == pytest.approx(seen.utilisation)
    total = (series.mean_latencies() * np.diff(series.served, axis=0, prepend=0)).sum()
    assert total / 200_000 == pytest.approx(seen.mean_latency)


def test_a_stream_of_unknown_length_thins_its_checkpoints():
    seen = queue(Listed(skewed(1, 150_000), 1000), "key", Cluster(2, 0.5))
    gaps = np.diff(seen.series.messages[:-1])
    assert 128 <= seen.series.messages.size <= 513
    assert len(set(gaps.tolist())) == 1


def test_percentiles_are_within_one_per_cent():
    latencies = np.random.default_rng(1).lognormal(3, 4, 100_000)
    histogram = LatencyHistogram()
    histogram.add(latencies[:30_000])
    histogram.add(latencies[30_000:])
    ordered = np.sort(latencies)
    for share in (0.01, 0.5, 0.99, 1.0):
        exact = ordered[int(np.ceil(share * latencies.size)) - 1]
        assert histogram.percentile(share) == pytest.approx(exact, rel=0.01)


@given(st.lists(st.floats(0, 100), max_size=60), st.integers(0, 2**32))
def test_signals_leave_the_wire_in_order_of_time_then_of_sending(dues, seed):
    wire = new_wire(64, 1)
    for number, due in enumerate(dues):
        send(wire, round(due / 10), number, 0, 1, np.array([float(number)]))
    order = []
    while wire.counts[0]:
        place = receive(wire)
        order.append(int(wire.signals[place, 0]))
    assert order == sorted(range(len(dues)), key=lambda n: (round(dues[n] / 10), n))


def test_a_keys_cost_is_the_value_its_hash_picks():
    keys = np.random.default_rng(2).integers(0, 2**63, 500).astype(np.uint64)
    ours = costs_of("evenly:min=2,max=8,values=4").of(keys, 0, 5)
    base = xxhash.xxh64_intdigest((11).to_bytes(4, "little"), seed=42)
    origin = xxhash.xxh64_intdigest((1).to_bytes(8, "little"), seed=base)
    for key, cost in zip(keys.tolist(), ours, strict=True):
        h = xxhash.xxh64_intdigest(key.to_bytes(8, "little"), seed=origin)
        assert cost == [2, 4, 6, 8][((h >> 33) * 4) >> 31]
    geometric = costs_of("geometric:min=1,max=8,values=4").of(keys, 0, 5)
    assert set(np.round(geometric, 9)) == {1, 2, 4, 8}


def test_rooms_that_are_outgrown_change_nothing(monkeypatch):
    keys = skewed(3, 3000, keys=700)
    cluster = Cluster(4, 0.9, 3, delay=200.0, merge_every=40.0, merge_cost=0.3)

    def seen(wire, pairs):
        monkeypatch.setattr("skewless.simulate.queue.run._WIRE", wire)
        monkeypatch.setattr("skewless.simulate.queue.run.key_table", lambda: key_table(pairs))
        found = queue(Listed(keys), "consistent:slot=2,virtual=3", cluster).as_json()
        return {name: value for name, value in found.items() if name != "messages_per_second"}

    assert seen(2, 512) == seen(1 << 16, 1 << 16)


def test_capacities_count_in_the_imbalance():
    cluster = Cluster(3, 0.9, capacities=[2.0, 1.0, 1.0])
    seen = queue("zipf:z=1.0,keys=500,messages=20000", "full-knowledge", cluster).balance
    fullest = max(seen.loads[0] / 2, *seen.loads[1:])
    assert seen.percent_imbalance == pytest.approx(100 * (fullest / 5000 - 1), abs=0.01)
    assert seen.imbalance < 0.01


def test_plans_are_told_what_was_served_since_the_one_before():
    told = []

    @dataclass(frozen=True)
    class Listening(PlannedGradedChoices):
        def replan(self, plan, report, feedback):
            told.append((feedback.served.sum(), feedback.busy_s.sum()))
            return super().replan(plan, report, feedback)

    scheme = Listening(learn=1000, relearn=1000)
    queue("zipf:z=1,keys=100,messages=4000", scheme, Cluster(4, 0.5))
    assert len(told) >= 3
    assert np.array(told) == pytest.approx(1000, abs=20)


def test_the_offered_load_is_met_whatever_the_costs():
    for costs in ("evenly:min=1,max=64,values=64", "geometric:min=1,max=9,values=3", "exponential"):
        cluster = Cluster(4, 0.8, capacities=[1, 2, 3, 4], costs=costs)
        stream = stream_of("zipf:z=1.5,keys=1000,messages=100000")
        seen = queue(stream, "shuffle", cluster)
        keys = np.concatenate([chunk.keys for chunk in stream.chunks(0)])
        work = costs_of(costs).of(keys, 0, 0).sum()
        assert work / seen.elapsed == pytest.approx(0.8 * 10, rel=0.01)


def test_memory_does_not_grow_with_the_stream():
    from skewless.simulate.queue.run import QueueRun

    stream = stream_of("zipf:z=1,keys=1000,messages=3000000")
    run = QueueRun(stream, scheme_of("consistent"), Cluster(10, 0.8, 2, delay=3.0), 0, False)
    sizes = []
    for chunk in stream.chunks(0):
        run.add(chunk.keys)
        sizes.append((run._queues.finishes.size, run._wire.due.size))
    assert len(set(sizes[1:])) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"load": 0}, "offered load must be a positive number"),
        ({"load": -1}, "offered load must be a positive number"),
        ({"load": float("nan")}, "offered load must be a positive number"),
        ({"load": 1e308}, r"offered load must be from 1e-09 to 1e\+09, not 1e\+308"),
        ({"load": 1e-320}, "offered load must be from 1e-09 to"),
        ({"capacities": [1, 1, 1e308]}, "capacity must be from 1e-09 to"),
        ({"changes": [(5, [1, 1, 1e-320])]}, "capacity must be from 1e-09 to"),
        ({"costs": "constant:value=1e308"}, "constant:value must be from 1e-09 to"),
        ({"costs": "exponential:mean=1e-320"}, "exponential:mean must be from 1e-09 to"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"sources": 0}, "sources must be at least 1"),
        ({"sources": 10**6}, "sources must be at most 10,000"),
        ({"capacities": [1, 2]}, "2 capacities for 3 workers"),
        ({"capacities": [1, 2, 0]}, "capacity must be a positive number"),
        ({"changes": [(5, [])]}, "workers must be at least 1"),
        ({"changes": [(5, [1, 1, -1])]}, "capacity must be a positive number"),
        ({"changes": [(5, [1] * 3), (5, [1] * 3)]}, "5 does not come after 5"),
        ({"changes": [(10, [1] * 3)]}, "change at message 10, but the stream has only 10"),
        ({"arrivals": "bursty"}, "even or poisson"),
        ({"delay": -1}, "delay must be a time"),
        ({"costs": "evenly:min=3,max=1"}, "min ≤ max"),
        ({"costs": "evenly:values=0"}, "must be a positive number"),
        ({"costs": "expotential"}, "did you mean 'exponential'"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, sentence):
    given_arguments = {"workers": 3, "load": 0.8} | arguments
    with pytest.raises(SkewlessError, match=sentence):
        queue("zipf:z=1,keys=10,messages=10", "key", Cluster(**given_arguments))


@pytest.mark.parametrize(
    ("load", "capacity", "cost"), [(1e9, 1e9, 1e-9), (1e-9, 1e-9, 1e9), (1e-9, 1e9, 1e-9)]
)
def test_figures_are_finite_at_the_ends_of_what_is_allowed(load, capacity, cost):
    cluster = Cluster(
        3, load, capacities=[1, capacity, 1 / capacity], costs=f"constant:value={cost}"
    )
    found = queue("zipf:z=1,keys=10,messages=100", "key", cluster).as_json()
    numbers = [value for value in found.values() if isinstance(value, float)]
    assert np.isfinite(numbers + found["utilisation"]).all()
