"""Consistent Grouping: what sources do with late signals, and what comes of it in time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.consistent.owners import deal, join, leave, shift
from skewless.schemes.consistent.worker import ENOUGH, LESS, MORE
from skewless.simulate.queue.run import Cluster, queue
from tests.test_laws import send

UNEQUAL = [5.0, 5.0, 5.0] + [1.0] * 7
WP = "zipf:z=1.0,keys=26000,messages=600000"


class Source:
    """One source that hears what a test tells it."""

    def __init__(self, spec, workers):
        self.scheme = scheme_of(spec)
        self.plan = self.scheme.plan(workers, 0)
        self.tally = self.scheme.tally(self.plan, 0)
        self.slot = 0

    def hear(self, worker, kind, now=0.0, ended=None, utilisation=0.5):
        self.slot += 1
        ended = now if ended is None else ended
        signal = np.array([float(self.slot), ended, utilisation])
        self.scheme.hear(self.plan, self.tally, worker, kind, signal, now)

    @property
    def counts(self):
        return np.bincount(self.tally.owners, minlength=self.tally.counts.size).tolist()


def test_a_virtual_worker_moves_only_once_both_queues_have_someone():
    source = Source("consistent:virtual=3", 3)
    source.hear(0, LESS)
    assert source.counts == [3, 3, 3]
    source.hear(2, MORE)
    assert source.counts == [2, 3, 4]
    assert source.tally.moves[0] == 1


def test_queues_are_first_come_first_served_and_hold_a_worker_once():
    source = Source("consistent:virtual=4", 4)
    source.hear(2, MORE)
    source.hear(3, MORE)
    source.hear(2, MORE)
    source.hear(0, LESS)
    assert source.counts == [3, 4, 5, 4]
    source.hear(1, LESS)
    assert source.counts == [3, 3, 5, 5]
    source.hear(0, LESS)
    assert source.counts == [3, 3, 5, 5]


def test_the_newest_word_of_a_worker_replaces_its_older_one():
    source = Source("consistent:virtual=4", 3)
    source.hear(1, MORE)
    source.hear(1, ENOUGH)
    source.hear(0, LESS)
    assert source.counts == [4, 4, 4]
    source.hear(0, MORE)
    source.hear(1, LESS)
    assert source.counts == [5, 3, 4]


def test_a_slot_is_heard_of_once_and_not_if_it_ended_before_the_last_move():
    source = Source("consistent:virtual=4", 2)
    source.hear(1, MORE, now=10)
    source.hear(0, LESS, now=12)
    assert source.counts == [3, 5]
    source.hear(0, LESS, now=13, ended=11)
    source.hear(1, MORE, now=13, ended=13)
    assert source.counts == [3, 5]
    source.slot -= 1
    source.hear(1, LESS, now=14)
    source.hear(0, MORE, now=14)
    assert source.counts == [3, 5]


def test_a_worker_keeps_its_last_virtual_worker():
    source = Source("consistent:virtual=2", 2)
    for now in range(1, 20):
        source.hear(0, LESS, now=now)
        source.hear(1, MORE, now=now)
    assert source.counts == [1, 3]


def test_the_least_loaded_virtual_worker_moves():
    source = Source("consistent:virtual=3", 2)
    source.tally.inner.loads[:] = [5, 0, 2, 0, 9, 0]
    source.hear(0, LESS)
    source.hear(1, MORE)
    assert source.tally.owners.tolist() == [0, 1, 1, 1, 0, 1]


@settings(max_examples=60)
@given(
    spec=st.sampled_from(["consistent:virtual=3", "consistent:virtual=5,settle=true"]),
    workers=st.integers(1, 6),
    words=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from([LESS, MORE, ENOUGH]),
            st.integers(0, 50),
            st.floats(0, 1.2),
        ),
        max_size=80,
    ),
)
def test_whatever_is_heard_no_virtual_worker_is_lost_and_nobody_is_left_without(
    spec, workers, words
):
    source = Source(spec, workers)
    total = source.tally.owners.size
    for now, (worker, kind, late, utilisation) in enumerate(words):
        source.hear(worker % workers, kind, float(now), float(now - late), utilisation)
        assert sum(source.counts) == total
        assert source.counts == source.tally.counts.tolist()
        assert min(source.counts) >= 1


def test_settling_makes_to_and_fro_ever_rarer_but_hears_a_saturated_worker_at_once():
    moves = {}
    for settle in ("false", "true"):
        source = Source(f"consistent:virtual=4,settle={settle}", 2)
        for now in range(1, 1000):
            fuller = int(np.argmax(source.counts)) if now > 1 else 0
            source.hear(fuller, LESS, now=now, utilisation=0.88)
            source.hear(1 - fuller, MORE, now=now, utilisation=0.7)
        moves[settle] = int(source.tally.moves[0])
    assert moves["false"] > 300
    assert moves["true"] < 20
    before = source.counts
    source.hear(0, LESS, now=2000, utilisation=1.0)
    source.hear(1, MORE, now=2000, utilisation=0.7)
    assert source.counts == [before[0] - 1, before[1] + 1]


def test_a_saturated_worker_need_not_wait_behind_one_that_is_only_busy():
    source = Source("consistent:virtual=4,settle=true", 3)
    source.tally.past.patience[2] = 8
    source.hear(2, MORE, utilisation=0.7)
    source.hear(0, LESS, utilisation=0.9)
    assert source.counts == [4, 4, 4]
    source.hear(1, LESS, utilisation=1.0)
    assert source.counts == [4, 3, 5]


@pytest.mark.parametrize("inner", ["porc", "key", "shuffle", "partial"])
def test_every_inner_scheme_routes_as_its_twin_does(inner):
    from tests.naive import TWINS

    scheme = scheme_of(f"consistent:inner={inner},virtual=4,epsilon=0.05")
    plan = scheme.plan(7, 11)
    keys = np.random.default_rng(3).zipf(1.3, 2000).astype(np.uint64) % 300
    out, _ = send(scheme, plan, scheme.tally(plan, 2), keys)
    assert out.tolist() == TWINS["consistent"].route(scheme, keys.tolist(), 7, 11, 2)


@pytest.mark.parametrize("settle", ["false", "true"])
def test_unequal_workers_end_with_short_queues_where_key_and_shuffle_grow(settle):
    """Signals are late and each source hears for itself."""
    cluster = Cluster(10, 0.8, 5, UNEQUAL, delay=5.0)
    key, shuffle, ours = (
        queue(WP, s, cluster, replication=False)
        for s in ("key", "shuffle", f"consistent:settle={settle}")
    )
    for other in (key, shuffle):
        assert other.queued > 100_000
        assert ours.queued < other.queued / 100
        assert 10 * ours.p99_latency < other.p99_latency
    late = ours.series.late_utilisations()
    assert late.max() - late.min() < (0.1 if settle == "false" else 0.2)
    assert len({tuple(t.owners.tolist()) for t in ours.tallies}) > 1


def test_settling_moves_less_at_no_worse_latency():
    cluster = Cluster(10, 0.8, 1, UNEQUAL, delay=5.0)
    restless, settled = (
        queue(WP, f"consistent:settle={s}", cluster, replication=True) for s in ("false", "true")
    )
    assert 4 * settled.tallies[0].moves[0] < restless.tallies[0].moves[0]
    assert settled.p99_latency < 2 * restless.p99_latency
    assert settled.balance.replication < restless.balance.replication


def test_it_recovers_when_capacities_change():
    total = sum(UNEQUAL)
    other = np.array([1.0] * 5 + [4.0] * 5)
    changed = (other * total / other.sum()).tolist()
    cluster = Cluster(10, 0.8, 3, UNEQUAL, [(200_000, changed)], delay=5.0)
    seen = queue(WP, "consistent", cluster, replication=False)
    longest = seen.series.queues.max(axis=1)
    after = longest[seen.series.messages > 200_000]
    assert after.max() > 500
    assert longest[-1] < 50


def test_leaving_moves_only_the_virtual_workers_of_the_one_that_leaves():
    owners = deal(4, 5)
    after = leave(owners, 2)
    assert (after[owners != 2] == owners[owners != 2]).all()
    assert sorted(np.bincount(after, minlength=4).tolist()) == [0, 6, 7, 7]
    back = join(after, 2)
    assert ((back == after) | (back == 2)).all()
    assert np.bincount(back, minlength=4).tolist() == [5, 5, 5, 5]


def test_a_source_at_work_goes_on_after_a_worker_left():
    scheme = scheme_of("consistent:virtual=5")
    plan = scheme.plan(4, 0)
    keys = np.random.default_rng(1).zipf(1.3, 4000).astype(np.uint64) % 200
    _, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:2000])
    unchanged, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    gone = scheme.leave(plan, 1)
    assert np.bincount(gone.owners, minlength=4)[1] == 0
    tally = scheme.reseat(gone, tally, leave(tally.owners, 1))
    after, tally = send(scheme, gone, tally, keys[2000:], start=2000)
    assert 1 not in after
    stayed = unchanged[2000:] != 1
    assert (after[stayed] == unchanged[2000:][stayed]).all()
    more = scheme.join(plan, 4)
    assert more.workers[0] == 5
    tally = scheme.reseat(more, scheme.tally(plan, 0), join(plan.owners, 4))
    grown, _ = send(scheme, more, tally, keys)
    assert ((grown == unchanged) | (grown == 4)).all()
    assert 4 in grown


def test_between_batches_busy_seconds_shift_virtual_workers():
    """Two of eight workers run at 30 %: batch by batch the slowest worker's time falls."""
    scheme = scheme_of("consistent")
    plan = scheme.plan(8, 0)
    speeds = np.array([0.3, 0.3] + [1.0] * 6)
    keys = np.random.default_rng(5).zipf(1.2, 20_000).astype(np.uint64) % 5000
    slowest = []
    for _ in range(4):
        out, tally = send(scheme, plan, scheme.tally(plan, 0), keys)
        served = np.bincount(out, minlength=8).astype(float)
        busy_s = served / speeds
        slowest.append(busy_s.max())
        feedback = Feedback.none(8)._replace(served=served, busy_s=busy_s)
        plan = scheme.replan(plan, scheme.report(plan, tally), feedback)
        assert np.bincount(plan.owners, minlength=8).min() >= 1
    ideal = keys.size / speeds.sum()
    assert slowest[0] > 2.3 * ideal
    assert slowest[-1] < 1.2 * ideal
    even = Feedback.none(8)._replace(busy_s=np.full(8, 3.0))
    report = scheme.report(plan, scheme.tally(plan, 0))
    fresh = scheme.plan(8, 0)
    assert np.array_equal(scheme.replan(fresh, report, even).owners, fresh.owners)


def test_measured_seconds_move_nothing_to_and_fro_once_the_shares_are_right():
    """Two of 24 workers at 30 %; what is measured varies by one per cent."""
    random = np.random.default_rng(3)
    speeds = np.array([0.3, 0.3] + [1.0] * 22)
    owners, loads = deal(24, 10), np.ones(240)
    plans = []
    for _ in range(20):
        busy_s = np.bincount(owners, minlength=24) / speeds * random.uniform(0.99, 1.01, 24)
        owners = shift(owners, loads, busy_s, 0.75, 0.85)
        plans.append(owners)
    assert np.bincount(owners)[:3].tolist() == [3, 3, 10]
    assert all(np.array_equal(plan, owners) for plan in plans[2:])


@pytest.mark.parametrize(
    ("scheme", "sentence"),
    [
        ("consistent:virtual=0", "1 to 1,000 virtual workers"),
        ("consistent:idle=0.9,busy=0.8", "idle ≤ busy"),
        ("consistent:slot=0", "slot must be a positive time"),
        ("consistent:inner=random", "porc"),
        ("consistent:epsilon=-1", "consistent:epsilon"),
    ],
)
def test_bad_parameters_are_one_sentence(scheme, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        scheme_of(scheme)


def test_the_last_worker_cannot_leave_and_a_present_one_cannot_join():
    with pytest.raises(SkewlessError, match="last one"):
        leave(deal(1, 3), 0)
    with pytest.raises(SkewlessError, match="owns no virtual worker"):
        leave(deal(2, 3), 7)
    with pytest.raises(SkewlessError, match="cannot join"):
        join(deal(2, 3), 1)
    with pytest.raises(SkewlessError, match="nothing is left"):
        join(deal(3, 1), 3)
