"""Power of Random Choices and the schemes it is compared with: bounds, memory, mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless
from skewless import measures
from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.schemes.api import TRUE_LOAD
from skewless.simulate.balance import Case, balance_all
from tests.naive import porc as naive
from tests.test_laws import send

streams = st.builds(
    lambda seed, z, keys, n: np.random.default_rng(seed).zipf(z, n).astype(np.uint64) % keys,
    st.integers(0, 2**32),
    st.floats(1.05, 3.0),
    st.integers(1, 500),
    st.integers(1, 3000),
)


@pytest.mark.parametrize("name", ["porc", "bounded-hash"])
@settings(max_examples=50)
@given(
    keys=streams,
    workers=st.integers(1, 80),
    sources=st.integers(1, 4),
    epsilon=st.sampled_from([0, 0.001, 0.01, 0.3, 2.0]),
    seed=st.integers(0, 2**20),
)
def test_no_load_reaches_its_bound(name, keys, workers, sources, epsilon, seed):
    scheme = f"{name}:epsilon={epsilon}"
    routed = skewless.route(keys, scheme, workers, sources=sources, seed=seed)
    for source in range(sources):
        for end in (1, 7, 100, keys.size):
            loads = np.bincount(routed[source::sources][:end], minlength=workers)
            assert loads.max() < (1 + epsilon) * loads.sum() / workers + 1
    loads = np.bincount(routed, minlength=workers)
    assert loads.max() < (1 + epsilon) * keys.size / workers + sources


@settings(max_examples=30)
@given(
    keys=streams,
    workers=st.integers(2, 30),
    epsilon=st.sampled_from([0, 0.01, 0.5]),
    weights=st.integers(0, 2**32),
)
def test_remembered_scans_give_what_scanning_from_the_start_gives(keys, workers, epsilon, weights):
    """With weights that are no whole numbers, and a probe that lowers the loads half way."""
    scheme = scheme_of(f"porc:epsilon={epsilon}")
    plan = scheme.plan(workers, 3)
    tally = scheme.tally(plan, 0)
    each = np.random.default_rng(weights).uniform(0.1, 9, keys.size)
    half = keys.size // 2
    out = np.empty(keys.size, np.int32)
    scheme.route(plan, tally, keys[:half], each[:half], each[:half], out[:half])
    loads, total = [0.0] * workers, 0.0
    expected = []
    for m, (key, weight) in enumerate(zip(keys.tolist(), each.tolist(), strict=True)):
        if m == half:
            for worker in range(0, workers, 2):
                probe = np.array([loads[worker] / 2])
                scheme.hear(plan, tally, worker, TRUE_LOAD, probe, 0.0)
                total += probe[0] - loads[worker]
                loads[worker] = probe[0]
        total += weight
        limit = (1 + epsilon) * total / workers
        if min(loads) < limit:
            worker = next(w for w in naive.candidates(key, workers, 3) if loads[w] < limit)
        else:
            worker = int(np.argmin(loads))
        loads[worker] += weight
        expected.append(worker)
    scheme.route(plan, tally, keys[half:], each[half:], each[half:], out[half:])
    assert out.tolist() == expected


@pytest.mark.parametrize("z", [0.8, 1.2, 1.6])
def test_replication_lies_between_key_and_shuffle_and_below_bounded_hash(z):
    stream = f"zipf:z={z},keys=10000,messages=500000"
    names = ("key", "porc", "bounded-hash", "bounded-hash:points=1", "shuffle")
    for workers in (10, 50):
        key, porc, ring, bare_ring, shuffle = (
            r.replication for r in balance_all(stream, [Case(n, workers) for n in names])
        )
        assert key == 1 < porc < ring < bare_ring < shuffle


def test_replication_falls_with_epsilon_and_stays_above_the_capacity_bound():
    stream = skewless.streams.stream_of("zipf:z=1.2,keys=5000,messages=300000")
    epsilons = (0, 0.01, 0.1, 0.5, 2.0)
    cases = [Case(f"porc:epsilon={e}", 20) for e in epsilons]
    seen = [r.replication for r in balance_all(stream, cases)]
    assert seen == sorted(seen, reverse=True)
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(0)])
    _, counts = np.unique(keys, return_counts=True)
    for epsilon, replication in zip(epsilons, seen, strict=True):
        assert replication >= measures.replication_bound(counts, 20, epsilon)


def test_the_first_candidate_is_key_groupings_worker():
    keys = np.arange(300, dtype=np.uint64)
    alone = [skewless.route(keys[i : i + 1], "porc", 17)[0] for i in range(keys.size)]
    assert alone == skewless.route(keys, "key", 17).tolist()


def test_one_worker_takes_everything():
    keys = np.arange(50, dtype=np.uint64)
    for name in ("porc", "bounded-hash", "potc-message", "consistent"):
        assert skewless.route(keys, name, 1).tolist() == [0] * 50


def test_two_random_workers_per_message_are_even_whatever_the_key():
    keys = np.zeros(100_000, np.uint64)
    loads = np.bincount(skewless.route(keys, "potc-message", 20, sources=3), minlength=20)
    assert loads.max() - loads.mean() < 15


def test_sources_draw_other_random_workers():
    scheme = scheme_of("potc-message")
    plan = scheme.plan(50, 0)
    keys = np.zeros(200, np.uint64)
    first, _ = send(scheme, plan, scheme.tally(plan, 0), keys)
    second, _ = send(scheme, plan, scheme.tally(plan, 1), keys)
    assert np.mean(first == second) < 0.2


@pytest.mark.parametrize(
    ("scheme", "sentence"),
    [
        ("porc:epsilon=-0.1", "porc:epsilon is the room above the mean load"),
        ("porc:epsilon=nan", "a number of at least 0"),
        ("bounded-hash:epsilon=-1", "bounded-hash:epsilon"),
        ("bounded-hash:points=0", "at least 1 point"),
    ],
)
def test_bad_parameters_are_one_sentence(scheme, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        scheme_of(scheme)
