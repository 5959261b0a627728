"""Proactive Online Shuffle Grouping: its state machines, late signals, and what comes of them."""

import heapq
from itertools import product
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.papers import EXPERIMENTS
from skewless.results import Setting
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.parts.tournament import least, play, tournament_of
from skewless.schemes.proactive.scheduler import RUN, SEND_ALL, WAIT_ALL
from skewless.schemes.proactive.scheme import ProactiveReport
from skewless.schemes.proactive.worker import BOTH, HEADER, MATRICES, REPLY, relative_error
from skewless.simulate.queue.costs import costs_of
from skewless.simulate.queue.run import Cluster, queue
from skewless.streams import stream_of
from tests.naive import proactive as naive
from tests.test_laws import send

STATES = ("ROUND ROBIN", "SEND ALL", "WAIT ALL", "RUN")
FINISH, HEAR, ARRIVE = range(3)


def run_beside_twin(scheme, keys, costs, slowness, delay, seed):
    """Kernels and twin, event by event, told the same: latencies, signals, states seen."""
    workers = len(slowness)
    plan = scheme.plan(workers, seed)
    tally, gauge = scheme.tally(plan, 0), scheme.gauge(plan)
    hashes = naive.Hashes(scheme, seed)
    scheduler = naive.Scheduler(scheme, hashes, workers, seed % workers)
    twins = [naive.Worker(scheme, hashes) for _ in range(workers)]
    free_at, latencies, signals, seen = [0.0] * workers, [], 0, set()
    note = np.zeros(scheme.note_floats)
    events = [(float(i), ARRIVE, i, None) for i in range(len(keys))]
    while events:
        now, what, number, about = heapq.heappop(events)
        key = keys[number]
        if what == ARRIVE:
            allowed = scheduler.allowed()
            worker = int(scheme.choose(plan, tally, np.uint64(key), 1.0, now))
            assert worker in allowed
            asked = bool(scheme.mark(plan, tally, worker, note))
            request = scheduler.send(key, worker, now)
            assert asked == (request is not None)
            if asked:
                assert note.tolist() == pytest.approx(request)
            service = costs[number] * slowness[worker]
            free_at[worker] = max(free_at[worker], now) + service
            latencies.append(free_at[worker] - now)
            about = (worker, service, request, note.copy())
            heapq.heappush(events, (free_at[worker], FINISH, number, about))
        elif what == FINISH:
            worker, service, request, asked = about
            signal = np.full(scheme.signal_floats, np.nan)
            kind = scheme.serve(
                plan,
                gauge,
                worker,
                np.uint64(key),
                service,
                now,
                request is not None,
                asked,
                signal,
            )
            reply, matrices = twins[worker].serve(key, service, now, request)
            assert (kind in (REPLY, BOTH)) == (reply is not None)
            assert (kind in (MATRICES, BOTH)) == (matrices is not None)
            if reply:
                assert signal[:HEADER].tolist() == pytest.approx(reply, rel=1e-9, abs=1e-6)
            if matrices:
                F, V = matrices
                cells = signal[HEADER:].reshape(*gauge.snapshot.shape[1:], 2)
                assert {c: int(cells[c][0]) for c in F} == F
                assert {c: cells[c][1] for c in V} == pytest.approx(V)
                assert cells[..., 0].sum() == sum(F.values())
            if kind:
                signals += 1
                about = (worker, kind, signal, reply, matrices)
                heapq.heappush(events, (now + delay, HEAR, number, about))
        else:
            worker, kind, signal, reply, matrices = about
            scheme.hear(plan, tally, worker, kind, signal, now)
            if reply:
                scheduler.hear_reply(worker, *reply)
            if matrices:
                scheduler.hear_matrices(worker, matrices)
        assert STATES[tally.state[0]] == scheduler.state
        assert tally.epoch[0] == scheduler.epoch
        seen.add(scheduler.state)
        if scheduler.state == "RUN":
            assert tally.ends.values.tolist() == pytest.approx(scheduler.C)
    return latencies, signals, seen


@settings(max_examples=25)
@given(
    stability=st.sampled_from(["paper", "mass"]),
    backlog=st.booleans(),
    window=st.integers(1, 30),
    workers=st.integers(1, 5),
    count=st.integers(1, 2500),
    delay=st.floats(0, 50),
    load=st.floats(0.5, 1.2),
    seed=st.integers(0, 1000),
)
def test_both_state_machines_equal_their_literal_twins_under_late_signals(
    stability, backlog, window, workers, count, delay, load, seed
):
    scheme = scheme_of(
        f"proactive:stability={stability},backlog={backlog},window={window},tolerance=0.3,"
        "epsilon=0.3,delta=0.2"
    )
    rng = np.random.default_rng(seed)
    keys = [int(k) for k in identities(rng.zipf(1.5, count) % 30)]
    costs = costs_of("evenly:values=8").of(np.array(keys, np.uint64), 0, seed)
    slowness = rng.uniform(0.5, 2, workers) * workers * load / float(costs.mean())
    run_beside_twin(scheme, keys, costs.tolist(), slowness.tolist(), delay, seed)


@pytest.mark.parametrize(("backlog", "window"), [("false", 128), ("true", 128), ("true", 700)])
def test_the_queue_simulator_runs_the_same_machines_through_all_states(backlog, window):
    stream = stream_of("zipf:z=1.2,keys=100,messages=8000")
    scheme = scheme_of(f"proactive:window={window},tolerance=0.2,backlog={backlog}")
    cluster = Cluster(3, 1.0, costs="evenly", delay=100.0)
    seen = queue(stream, scheme, cluster, seed=4)
    keys = next(stream.chunks(4)).keys
    costs = costs_of("evenly").of(keys, 0, 4)
    interval = float(costs.mean()) / 3
    latencies, signals, states = run_beside_twin(
        scheme, keys.tolist(), costs.tolist(), [1 / interval] * 3, 100 / interval, 4
    )
    assert states == set(STATES)
    assert seen.mean_latency == pytest.approx(mean(latencies) * interval)
    assert seen.control_messages == signals > 10


def test_a_cell_never_hit_adds_nothing_and_one_newly_hit_adds_all_of_its_cost():
    cells = np.zeros((1, 4, 2))
    cells[0, 0] = [2, 20]
    cells[0, 1] = [1, 5]
    snapshot = np.array([[8.0, 0.0, 0.0, 0.0]])
    assert relative_error(cells, snapshot.copy(), False) == pytest.approx((2 + 5) / 8)
    assert relative_error(cells, snapshot, True) == pytest.approx((2 * 2 + 1 * 5) / (2 * 8))
    assert snapshot.tolist() == [[10, 5, 0, 0]]


def test_costs_of_zero_are_stable_and_costs_out_of_nothing_are_not():
    cells = np.zeros((1, 1, 2))
    cells[0, 0] = [3, 0]
    assert relative_error(cells, np.zeros((1, 1)), False) == 0
    cells[0, 0] = [3, 1]
    assert relative_error(cells, np.zeros((1, 1)), False) == np.inf


class Asked:
    """A scheduler in SEND ALL, all of whose workers charge 1 for every key."""

    def __init__(self, spec="proactive", workers=2):
        self.scheme = scheme_of(spec)
        self.plan = self.scheme.plan(workers, 0)
        self.tally = self.scheme.tally(self.plan, 0)
        self.cells = np.ones_like(self.plan.known)
        self.note = np.zeros(2)
        for worker in range(workers):
            self.tell(worker)

    def tell(self, worker):
        self.hear(worker, MATRICES, 0, 0)

    def hear(self, worker, kind, epoch, delta):
        signal = np.concatenate([[epoch, delta], self.cells.ravel()])
        self.scheme.hear(self.plan, self.tally, worker, kind, signal, 0.0)

    def send(self, key=1, now=0.0):
        worker = self.scheme.choose(self.plan, self.tally, np.uint64(key), 1.0, now)
        return worker, bool(self.scheme.mark(self.plan, self.tally, worker, self.note))

    @property
    def state(self):
        return self.tally.state[0]


def test_new_matrices_start_requests_anew_and_older_answers_are_ignored():
    asked = Asked()
    assert asked.state == SEND_ALL
    assert [asked.send(), asked.send()] == [(0, True), (1, True)]
    assert asked.state == WAIT_ALL
    asked.hear(0, REPLY, 1, 3.0)
    asked.tell(1)
    assert asked.state == SEND_ALL
    asked.hear(1, REPLY, 1, 5.0)
    assert [asked.send(), asked.send()] == [(0, True), (1, True)]
    asked.hear(0, REPLY, 1, 9.0)
    asked.hear(1, REPLY, 2, 0.25)
    assert asked.state == WAIT_ALL
    before = asked.tally.ends.values.copy()
    asked.hear(0, BOTH, 2, -0.5)
    assert (asked.tally.ends.values - before).tolist() == [-0.5, 0.25]
    assert asked.state == SEND_ALL  # the answer completed epoch 2, the matrices began epoch 3
    assert asked.tally.epoch[0] == 3


def test_a_key_unseen_in_some_row_costs_the_workers_mean():
    asked = Asked("proactive:epsilon=0.9,delta=0.25", workers=1)
    asked.cells[:] = 0
    asked.cells[:, 0] = [2, 20]
    asked.cells[:, 1] = [1, 2]
    asked.tell(0)
    hashes = naive.Hashes(asked.scheme, 0)
    seen = set()
    for number in range(500):
        key = int(identities(np.array([number]))[0])
        columns = {column for _, column in hashes.cells(key)}
        expected = 22 / 3 if columns - {0, 1} else 2 if 1 in columns else 10
        before = asked.tally.ends.values[0]
        asked.send(key)
        assert asked.tally.ends.values[0] - before == pytest.approx(expected)
        seen.add(expected)
    assert len(seen) == 3


def test_backlog_forgets_work_that_is_done_and_keeps_what_was_sent_since_the_request():
    asked = Asked("proactive:backlog=true", workers=1)
    asked.send(now=100.0)
    assert asked.tally.ends.values[0] == 101
    asked.send(now=100.5)
    asked.send(now=200.0)
    assert asked.tally.ends.values[0] == 201
    asked.hear(0, REPLY, 1, 50.0)  # done at 151: well before the last message came
    assert asked.state == RUN
    assert asked.tally.ends.values[0] == 201
    asked.tell(0)
    asked.send(now=210.0)
    asked.send(now=211.0)
    asked.hear(0, REPLY, 2, 30.0)
    assert asked.tally.ends.values[0] == 211 + 30 + 1


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=70),
    st.lists(st.tuples(st.integers(0, 69), st.floats(0, 1e6)), max_size=50),
)
def test_a_tournament_knows_the_least_after_every_change(values, changes):
    tournament = tournament_of(np.array(values))
    for worker, value in changes:
        if worker < len(values):
            values[worker] = value
            play(tournament, worker, value)
        assert values[least.py_func(tournament)] <= min(values) * (1 + 1e-12) + 1e-300
        assert tournament.values.tolist() == values


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_greedy_makespan_is_within_the_papers_factor_of_the_optimum(costs, workers):
    scheme = scheme_of("full-knowledge")
    plan = scheme.plan(workers, 0)
    out = np.zeros(len(costs), np.int32)
    weights = np.array(costs, np.float64)
    keys = np.arange(len(costs), dtype=np.uint64)
    scheme.route(plan, scheme.tally(plan, 0), keys, weights, np.zeros(len(costs)), out)

    def makespan(places):
        return max(
            sum(c for c, p in zip(costs, places, strict=True) if p == w) for w in range(workers)
        )

    optimum = min(makespan(places) for places in product(range(workers), repeat=len(costs)))
    assert makespan(out.tolist()) <= (2 - 1 / workers) * optimum


def test_the_papers_factor_is_reached():
    scheme = scheme_of("full-knowledge")
    plan = scheme.plan(3, 0)
    weights = np.array([1.0] * 6 + [3.0])
    out = np.zeros(7, np.int32)
    keys = np.arange(7, dtype=np.uint64)
    scheme.route(plan, scheme.tally(plan, 0), keys, weights, np.zeros(7), out)
    assert np.bincount(out, weights).max() == (2 - 1 / 3) * 3


def test_full_knowledge_gives_a_worker_twice_as_strong_twice_the_work():
    cluster = Cluster(3, 0.9, capacities=[2.0, 1.0, 1.0], costs="evenly")
    seen = queue("zipf:z=1.0,keys=500,messages=20000", "full-knowledge", cluster)
    assert seen.balance.loads[0] / sum(seen.balance.loads) == pytest.approx(0.5, abs=0.02)


def test_a_plan_that_knows_costs_starts_in_run_and_evens_out_work():
    scheme = scheme_of("proactive")
    plan = scheme.plan(8, 3)
    keys = next(stream_of("zipf:z=1.0,keys=200,messages=20000").chunks(0)).keys
    costs = costs_of("evenly").of(keys, 0, 0)
    gauge = scheme.gauge(plan)
    signal, note = np.zeros(scheme.signal_floats), np.zeros(2)
    for key, cost in zip(keys[:1000], costs[:1000], strict=True):
        scheme.serve(plan, gauge, 0, key, cost, 0.0, False, note, signal)
    report = scheme.merge(ProactiveReport(gauge.cells[0]), ProactiveReport(gauge.cells[1]))
    following = scheme.replan(plan, report, Feedback.none(8))
    assert (plan.known == 0).all()
    loads = np.zeros(8)
    for source in range(4):
        tally = scheme.tally(following, source)
        out, _ = send(scheme, following, tally, keys[source::4])
        loads += np.bincount(out, costs[source::4], minlength=8)
        assert tally.state[0] == RUN
        assert out[0] == (3 + source) % 8
    assert loads.max() / loads.mean() < 1.03
    again = scheme.replan(following, report, Feedback.none(8))
    assert again.known.sum() == pytest.approx(1.5 * report.cells.sum())
    unheard = scheme.report(following, scheme.tally(following, 0))
    assert scheme.replan(following, unheard, Feedback.none(8)) is following


STREAMS = 3
MESSAGES = 327_680


@pytest.fixture(scope="module")
def completions():
    """Mean completion time ÷ round robin's, and control messages per message; late feedback."""
    specs = ("proactive:stability=paper", "proactive:backlog=true", "full-knowledge")
    cluster = Cluster(5, 1.0, costs="evenly:keys=4096", delay=6.5)
    out = {}
    for z in (0.5, 1.0):
        stream = f"zipf:z={z},keys=4096,messages={MESSAGES}"
        ratios = {spec: [] for spec in specs}
        for seed in range(STREAMS):
            base = queue(stream, "shuffle", cluster, seed=seed, replication=False)
            for spec in specs:
                seen = queue(stream, spec, cluster, seed=seed, replication=False)
                control = seen.control_messages / MESSAGES
                ratios[spec].append((seen.mean_latency / base.mean_latency, control))
        for spec, seen in ratios.items():
            out[z, spec] = tuple(np.mean(seen, axis=0))
    return out


def test_the_papers_rule_is_no_worse_than_round_robin_and_better_on_skew(completions):
    assert completions[0.5, "proactive:stability=paper"][0] <= 1.05
    assert completions[1.0, "proactive:stability=paper"][0] <= 0.92


@pytest.mark.parametrize("z", [0.5, 1.0])
def test_backlog_takes_a_third_off_and_signals_are_few(completions, z):
    ratio, control = completions[z, "proactive:backlog=true"]
    assert completions[z, "full-knowledge"][0] < ratio <= 0.65
    assert 0 < control < 0.01


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("proactive:window=0", "window must be at least 1"),
        ("proactive:tolerance=0", "tolerance must be above 0"),
        ("proactive:tolerance=nan", "tolerance must be above 0"),
        ("proactive:epsilon=1", "epsilon must lie between 0 and 1"),
        ("proactive:epsilon=0", "epsilon must lie between 0 and 1"),
        ("proactive:delta=1.5", "delta must lie between 0 and 1"),
        ("proactive:stability=none", "mass"),
    ],
)
def test_parameters_out_of_range_are_one_clear_sentence(spec, sentence):
    with pytest.raises(SkewlessError, match=sentence) as error:
        scheme_of(spec)
    assert "\n" not in str(error.value)


def test_costs_dealt_to_known_keys_give_each_value_to_as_many():
    costs = costs_of("evenly:min=1,max=64,values=64,keys=4096")
    keys = identities(np.arange(1, 4097))
    dealt = costs.of(keys, 0, 1)
    values, counts = np.unique(dealt, return_counts=True)
    assert values.tolist() == list(range(1, 65))
    assert set(counts) == {64}
    assert (costs.of(keys, 0, 2) != dealt).mean() > 0.9
    assert (costs.of(keys[::-1], 0, 1) == dealt[::-1]).all()
    assert np.isin(costs.of(identities(np.array([-1, 9999])), 0, 1), values).all()
    with pytest.raises(SkewlessError, match="at least the number of values"):
        costs_of("evenly:values=64,keys=63")


@pytest.mark.parametrize("name", ["proactive-fig10"])
def test_figures_show_what_must_be_seen(name):
    done = []
    result = EXPERIMENTS[name](Setting(quick=True, streams=1, step=done.append))
    assert result.name == name
    assert result.holds, [check for check in result.checks if not check.holds]
    assert all((result.rows, result.panels, result.notes, done))
