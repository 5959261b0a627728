"""Laws that every registered scheme keeps; a new scheme gets them by being registered.

Which laws a scheme gets follows from what it has: a table, ears, workers that send signals.
"""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless.schemes import SCHEMES, Feedback, Scheme, check_scheme, scheme_of
from skewless.schemes.api import TRUE_LOAD, hear_nothing, serve_silently
from skewless.schemes.check import arrays_of, same_state, send, skewed, walk
from skewless.schemes.graded import GAIN, MEAN
from tests.golden.routes import SMALL, name_of
from tests.naive import TWINS
from tests.naive.graded_planned import salt_hash
from tests.naive.hashing import choice_hash, choices, scale

EVERY = sorted(SMALL.get(name, name) for name in SCHEMES)
DEFAULTS = sorted(SMALL)
WITH_TABLES = [s for s in EVERY if SCHEMES[name_of(s)].table is not Scheme.table]
HEARING = [s for s in EVERY if SCHEMES[name_of(s)].hear is not hear_nothing]
SIGNALLING = [s for s in EVERY if SCHEMES[name_of(s)].serve is not serve_silently]
LEARNING = [s for s in EVERY if SCHEMES[name_of(s)].learns != "nothing"]
LAW = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

streams = st.builds(
    lambda seed, z, keys, n: np.random.default_rng(seed).zipf(z, n).astype(np.uint64) % keys,
    st.integers(0, 2**32),
    st.floats(1.05, 3.0),
    st.integers(1, 500),
    st.integers(0, 600),
)
worker_counts = st.integers(1, 70)
seeds = st.integers(0, 2**30 - 1)


def rebuild(state, arrays):
    """The same nested NamedTuples around other arrays."""
    parts = [rebuild(p, arrays) if isinstance(p, tuple) else next(arrays) for p in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def plans_of(scheme, keys, workers, seed):
    """The first plan, and the one that is learned from the stream."""
    first = scheme.plan(workers, seed)
    _, tally = send(scheme, first, scheme.tally(first, 0), keys)
    yield first
    yield scheme.replan(first, scheme.report(first, tally), Feedback.none(workers))


@pytest.mark.parametrize("name", EVERY + DEFAULTS)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds, source=st.integers(0, 20))
def test_kernel_equals_its_naive_twin(name, keys, workers, seed, source):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    out, _ = send(scheme, plan, scheme.tally(plan, source), keys)
    assert out.tolist() == TWINS[name_of(name)].route(scheme, keys.tolist(), workers, seed, source)


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds, data=st.data())
def test_routing_in_pieces_is_routing_at_once(name, keys, workers, seed, data):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    cut = data.draw(st.integers(0, keys.size))
    for plan in plans_of(scheme, keys, workers, seed):
        whole, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
        first, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:cut])
        second, _ = send(scheme, plan, tally, keys[cut:], start=cut)
        assert np.array_equal(whole, np.concatenate([first, second]))
        assert keys.size == 0 or (whole.min() >= 0 and whole.max() < workers)


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds)
def test_a_key_stays_within_the_stated_number_of_workers(name, keys, workers, seed):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    bound = 1 if scheme.one_worker_per_key else scheme.most_workers_per_key(workers)
    for plan in plans_of(scheme, keys, workers, seed):
        homes = {}
        for source in range(3):
            out, _ = send(scheme, plan, scheme.tally(plan, source), keys[source::3])
            for key, worker in zip(keys[source::3].tolist(), out.tolist(), strict=True):
                homes.setdefault(key, set()).add(worker)
        assert all(len(home) <= bound for home in homes.values())


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds)
def test_the_plan_is_never_written_and_survives_pickle_and_arrow(name, keys, workers, seed):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    before = pickle.loads(pickle.dumps(plan))
    half = keys.size // 2
    _, tally = send(scheme, plan, scheme.tally(plan, 1), keys[:half])
    plain, _ = send(scheme, plan, pickle.loads(pickle.dumps(tally)), keys[half:], start=half)
    assert same_state(plan, before)
    assert type(plan) is type(before)

    crossed = iter([_through_arrow(a) for a in arrays_of(tally)])
    through, _ = send(scheme, before, rebuild(tally, crossed), keys[half:], start=half)
    assert np.array_equal(plain, through)


def _through_arrow(array):
    column = pa.array(array.ravel())
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], ["a"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    read = pa.ipc.open_stream(sink.getvalue()).read_all()["a"]
    return read.to_numpy().astype(array.dtype).reshape(array.shape)


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds)
def test_reports_merge_in_any_order_and_an_idle_source_changes_nothing(name, keys, workers, seed):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    reports = []
    for source in range(3):
        _, tally = send(scheme, plan, scheme.tally(plan, source), keys[source::3])
        reports.append(scheme.report(plan, tally))
    a, b, c = reports
    idle = scheme.report(plan, scheme.tally(plan, 9))
    same = getattr(
        TWINS[name_of(name)], "same_reports", same_state
    )  # sketches agree within their error bound
    assert same(scheme.merge(a, b), scheme.merge(b, a))
    assert same(
        scheme.merge(scheme.merge(a, b), c),
        scheme.merge(a, scheme.merge(b, c)),
    )
    assert same(scheme.merge(a, idle), a)


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds)
def test_replanning_gives_a_plan_that_routes(name, keys, workers, seed):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    _, tally = send(scheme, plan, scheme.tally(plan, 0), keys)
    following = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(workers))
    assert type(following) is type(plan)
    out, _ = send(scheme, following, scheme.tally(following, 0), keys, start=keys.size)
    assert keys.size == 0 or (out.min() >= 0 and out.max() < workers)


@pytest.mark.parametrize("name", HEARING)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds, data=st.data())
def test_late_feedback_that_differs_per_source_breaks_nothing(name, keys, workers, seed, data):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    for source in range(2):
        tally = scheme.tally(plan, source)
        for start in range(0, keys.size, 100):
            out, tally = send(scheme, plan, tally, keys[start : start + 100], start)
            assert out.min() >= 0
            assert out.max() < workers
            late = data.draw(st.integers(0, start + 1))
            worker = data.draw(st.integers(0, workers - 1))
            scheme.hear(plan, tally, worker, TRUE_LOAD, np.array([float(late)]), float(start))


@pytest.mark.parametrize("name", HEARING)
def test_a_source_that_has_sent_nothing_hears_too(name):
    scheme = scheme_of(name)
    plan = scheme.plan(7, 0)
    tally = scheme.tally(plan, 0)
    for worker in range(7):
        scheme.hear(plan, tally, worker, TRUE_LOAD, np.array([float(worker)]), 0.0)
    out, _ = send(scheme, plan, tally, skewed(300, 0))
    assert out.min() >= 0
    assert out.max() < 7


@pytest.mark.parametrize("name", WITH_TABLES)
def test_a_table_routes_as_the_kernel_does(name):
    scheme = scheme_of(name)
    plan = scheme.plan(13, 3)
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 2**63, 2000).astype(np.uint64)
    keys[::2] = rng.zipf(1.3, 1000) % 50  # and some that are hot
    if scheme.learns != "nothing":
        _, tally = send(scheme, plan, scheme.tally(plan, 0), keys)
        plan = scheme.replan(plan, scheme.report(plan, tally), Feedback.none(13))
    table = scheme.table(plan)
    assert table is not None
    out, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    assert scheme.learns == "nothing" or table.heads.size
    starts = table.head_starts.tolist()
    expected = []
    for number, k in enumerate(keys.tolist()):
        if k in table.heads:
            row = table.heads.tolist().index(k)
            own = table.head_workers[starts[row] : starts[row + 1]]
            expected.append(own[scale(salt_hash(0, float(number)), own.size)])
        else:
            bucket = scale(choice_hash(k, 0, table.seed), table.buckets.size)
            expected.append(table.buckets[bucket])
    assert out.tolist() == expected


@pytest.mark.parametrize("name", EVERY)
def test_every_scheme_passes_the_public_check(name):
    check_scheme(scheme_of(name), same_reports=getattr(TWINS[name_of(name)], "same_reports", None))


@pytest.mark.parametrize("name", SIGNALLING)
def test_late_signals_of_its_own_kinds_are_heard_and_change_the_route(name):
    scheme, keys = scheme_of(name), skewed(600, 0)
    plan = scheme.plan(7, 0)
    heard, deaf = walk(scheme, plan, keys, 7), walk(scheme, plan, keys, 7, lag=600)
    assert len(heard.kinds) >= 2
    assert not deaf.kinds
    assert not np.array_equal(heard.workers, deaf.workers)


@pytest.mark.parametrize("name", [s for s in HEARING if s not in SIGNALLING])
def test_a_worker_that_is_heard_to_be_full_gets_few_new_keys(name):
    scheme, keys = scheme_of(name), skewed(600, 0)
    plan = scheme.plan(7, 0)
    before, tally = send(scheme, plan, scheme.tally(plan, 0), keys[:300])
    full = int(np.bincount(before, minlength=7).argmax())
    for worker in range(7):
        load = 1e6 if worker == full else 100.0
        scheme.hear(plan, tally, worker, TRUE_LOAD, np.array([load]), 300.0)
    # New keys: some schemes remember where the old ones are.
    after, _ = send(scheme, plan, tally, keys[300:] + np.uint64(1000), start=300)
    assert (after == full).sum() < (before == full).sum() / 2


@pytest.mark.parametrize("workers", [20, 200])
def test_searches_of_d_choices_follow_loads_that_were_heard(workers):
    scheme = scheme_of("d-choices:refresh=500")  # with 200 workers it remembers where it searched
    plan = scheme.plan(workers, 0)
    _, tally = send(scheme, plan, scheme.tally(plan, 0), skewed(2000, 0))
    own = choices(0, workers, int(tally.choices[0]), 0)
    for load, worker in enumerate(own[::-1]):
        scheme.hear(plan, tally, worker, TRUE_LOAD, np.array([float(load)]), 0.0)
    loads = tally.loads.copy()
    for _ in range(30):
        expected = min(own, key=lambda worker: loads[worker])
        loads[expected] += 1
        assert scheme.choose(plan, tally, np.uint64(0), 1.0, 0.0) == expected


def test_graded_hears_loads_per_capacity():
    scheme = scheme_of("graded")
    plan = scheme.plan(4, 0, np.array([3.0, 1.0, 1.0, 1.0]))
    tally = scheme.tally(plan, 0)
    scheme.hear(plan, tally, 0, TRUE_LOAD, np.array([10.0]), 0.0)
    assert tally.sums[MEAN] == pytest.approx(tally.sums[GAIN] * 10 * 2 / 4)


@pytest.mark.parametrize("name", ["porc", "bounded-hash"])
def test_the_least_loaded_takes_a_message_for_which_rounding_leaves_no_room(name):
    scheme = scheme_of(f"{name}:epsilon=0")
    plan = scheme.plan(3, 0)
    tally = scheme.tally(plan, 0)
    tally.loads[:], tally.total[0] = [5, 5, 4], 2
    assert scheme.choose(plan, tally, np.uint64(1), 1.0, 0.0) == 2


def test_small_parameters_leave_the_beginning_behind():
    keys = skewed(600, 0)

    def tally_of(name):
        scheme = scheme_of(SMALL[name])
        return walk(scheme, scheme.plan(7, 0), keys, 7).tally

    for name in LEARNING:
        assert scheme_of(name).learning_messages < 300
    assert tally_of("proactive").state[0] != 0  # round robin is over
    assert tally_of("dynamic").moves[0] > 0  # old keys have widened
    assert tally_of("consistent").moves[0] > 0  # virtual workers have moved
