"""Laws that every registered scheme keeps; a new scheme gets them by being registered."""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skewless.schemes import SCHEMES, Feedback, scheme_of
from skewless.schemes.api import TRUE_LOAD
from tests.naive import TWINS
from tests.naive.graded_planned import salt_hash
from tests.naive.hashing import choice_hash, scale

EVERY = sorted(SCHEMES)
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


def flat(state):
    """All arrays of nested NamedTuples, in order."""
    for part in state:
        if isinstance(part, tuple):
            yield from flat(part)
        else:
            yield part


def rebuild(state, arrays):
    """The same nested NamedTuples around other arrays."""
    parts = [rebuild(p, arrays) if isinstance(p, tuple) else next(arrays) for p in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(flat(a), flat(b), strict=True))


def send(scheme, plan, tally, keys, start=0):
    tally = scheme.reserve(tally, keys.size)
    out = np.full(keys.size, -1, np.int32)
    times = np.arange(start, start + keys.size, dtype=np.float64)
    scheme.route(plan, tally, keys, np.broadcast_to(np.ones(1), keys.size), times, out)
    return out, tally


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds, source=st.integers(0, 20))
def test_kernel_equals_its_naive_twin(name, keys, workers, seed, source):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    out, _ = send(scheme, plan, scheme.tally(plan, source), keys)
    assert out.tolist() == TWINS[name].route(scheme, keys.tolist(), workers, seed, source)


@pytest.mark.parametrize("name", EVERY)
@LAW
@given(keys=streams, workers=worker_counts, seed=seeds, data=st.data())
def test_routing_in_pieces_is_routing_at_once(name, keys, workers, seed, data):
    scheme = scheme_of(name)
    workers = max(workers, scheme.least_workers)
    plan = scheme.plan(workers, seed)
    whole, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    cut = data.draw(st.integers(0, keys.size))
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
    plan = scheme.plan(workers, seed)
    homes = {}
    for source in range(3):
        out, _ = send(scheme, plan, scheme.tally(plan, source), keys[source::3])
        for key, worker in zip(keys[source::3].tolist(), out.tolist(), strict=True):
            homes.setdefault(key, set()).add(worker)
    bound = 1 if scheme.one_worker_per_key else scheme.most_workers_per_key(workers)
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
    assert equal(plan, before)
    assert type(plan) is type(before)

    crossed = iter([_through_arrow(a) for a in flat(tally)])
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
    same = getattr(TWINS[name], "same_reports", equal)  # sketches agree within their error bound
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


@pytest.mark.parametrize("name", EVERY)
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


@pytest.mark.parametrize("name", EVERY)
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
    if table is None:
        return
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
