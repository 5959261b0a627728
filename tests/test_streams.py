from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skewless.errors import SkewlessError
from skewless.hashing import identities, identity
from skewless.streams import STREAMS, Chunk, stream_of
from skewless.streams import api as streams_api
from skewless.streams.countries import COUNTRIES, HOT
from skewless.streams.drift import turn_of
from skewless.streams.synthetic import Synthetic

SYNTHETIC = [
    "zipf:z=1.1,keys=1000,messages=20000",
    "lognormal:messages=20000",
    "countries:skew=60,messages=20000,half=first",
    "drift:z=1.2,keys=500,messages=20000,period=3000",
    "spike:keys=1000,messages=20000",
]


def keys_of(spec: str, seed: int = 0) -> np.ndarray:
    return np.concatenate([chunk.keys for chunk in stream_of(spec).chunks(seed)])


def counts_of(keys: np.ndarray, ranked: np.ndarray) -> np.ndarray:
    """How often each of the ranked identities occurs; none else may occur."""
    order = np.argsort(ranked)
    at = np.searchsorted(ranked[order], keys)
    assert np.array_equal(ranked[order][np.minimum(at, ranked.size - 1)], keys)
    return np.bincount(order[at], minlength=ranked.size)


def longs(first: int, last: int) -> np.ndarray:
    return identities(np.arange(first, last + 1, dtype=np.int64))


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value, with classes of less than 10 expected messages taken together."""
    expected = probabilities * counts.sum()
    often = expected >= 10
    seen, due = counts[often], expected[often]
    if not often.all() and expected[~often].sum() >= 10:
        seen = np.append(seen, counts[~often].sum())
        due = np.append(due, expected[~often].sum())
    return float(stats.chisquare(seen, due * seen.sum() / due.sum()).pvalue)


def test_every_synthetic_stream_is_tried_here() -> None:
    synthetic = {name for name, kind in STREAMS.items() if issubclass(kind, Synthetic)}
    assert {spec.partition(":")[0] for spec in SYNTHETIC} == synthetic


@pytest.mark.parametrize("spec", SYNTHETIC)
def test_the_same_seed_gives_the_same_stream_and_another_seed_another(spec: str) -> None:
    assert np.array_equal(keys_of(spec, 7), keys_of(spec, 7))
    assert not np.array_equal(keys_of(spec, 7), keys_of(spec, 8))
    assert keys_of(spec, -1).size == 20000


@pytest.mark.parametrize("spec", SYNTHETIC)
def test_a_stream_does_not_depend_on_the_chunk_size(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = keys_of(spec, 3)
    monkeypatch.setattr(streams_api, "CHUNK_MESSAGES", 777)
    pieces = list(stream_of(spec).chunks(3))
    assert [chunk.keys.size for chunk in pieces] == [777] * 25 + [575]
    assert np.array_equal(np.concatenate([chunk.keys for chunk in pieces]), whole)


@pytest.mark.parametrize("spec", SYNTHETIC)
def test_a_synthetic_stream_has_its_length_and_no_sources(spec: str) -> None:
    stream = stream_of(spec)
    chunks = list(stream.chunks())
    assert stream.length() == sum(chunk.keys.size for chunk in chunks) == 20000
    assert all(chunk.sources is None and chunk.keys.dtype == np.uint64 for chunk in chunks)
    assert stream_of(stream.spec) == stream
    assert stream_of(stream) is stream
    with pytest.raises(SkewlessError, match="no source column"):
        next(stream.chunks(0, "2"))


def test_seeds_are_whole_numbers_of_any_kind():
    stream = stream_of("zipf:z=1,keys=100,messages=1000")
    [ours], [theirs] = stream.chunks(np.int32(3)), stream.chunks(3)
    assert ours.keys.tolist() == theirs.keys.tolist()
    with pytest.raises(SkewlessError, match="A seed is a whole number, not 'a'"):
        next(stream.chunks("a"))


@pytest.mark.parametrize("keys", [1, 2, 50, 3000])
@pytest.mark.parametrize("z", [0.0, 0.3, 0.999999, 1.0, 1.000001, 1.2, 2.0, 5.0])
def test_zipf_has_the_exact_probabilities(z: float, keys: int) -> None:
    drawn = keys_of(f"zipf:z={z},keys={keys},messages=400000", seed=1)
    counts = counts_of(drawn, longs(1, keys))
    weights = np.arange(1, keys + 1) ** -z
    if keys == 1:
        assert counts[0] == 400000
    else:
        # 24 such tests: 1e-4 lets a right sampler fail once in 400 changes of its numbers.
        assert chi_square(counts, weights / weights.sum()) > 1e-4


def test_zipf_neighbours_in_the_stream_are_independent() -> None:
    drawn = keys_of("zipf:z=0,keys=30,messages=500000", seed=2)
    ranked = longs(1, 30)
    order = np.argsort(ranked)
    rank = order[np.searchsorted(ranked[order], drawn)]
    pairs = np.bincount(rank[:-1] * 30 + rank[1:], minlength=900)
    assert chi_square(pairs, np.full(900, 1 / 900)) > 1e-4


def test_zipf_with_an_extreme_exponent_stays_in_range() -> None:
    assert set(keys_of("zipf:z=300,keys=1e9,messages=10000")) == {np.uint64(identity(1))}


def test_a_huge_zipf_stream_starts_at_once() -> None:
    chunk = next(stream_of("zipf:z=1,keys=31e6,messages=1.2e9").chunks())
    assert isinstance(chunk, Chunk)
    assert chunk.keys.size == streams_api.CHUNK_MESSAGES


@pytest.mark.parametrize(("mu", "sigma"), [(1.789, 2.366), (2.245, 1.133)])
def test_lognormal_is_the_rounded_distribution(mu: float, sigma: float) -> None:
    drawn = keys_of(f"lognormal:mu={mu},sigma={sigma},messages=500000", seed=5)
    near = longs(0, 100)
    inside = drawn[np.isin(drawn, near)]
    edges = stats.lognorm(sigma, scale=np.exp(mu)).cdf(np.append(0, np.arange(101) + 0.5))
    seen = np.append(counts_of(inside, near), drawn.size - inside.size)
    assert chi_square(seen, np.append(np.diff(edges), 1 - edges[-1])) > 1e-4


def test_lognormal_with_an_extreme_sample_stays_a_long() -> None:
    assert set(keys_of("lognormal:mu=43,sigma=0,messages=10")) == {
        np.uint64(identity(int(np.floor(np.exp(43.0) + 0.5))))
    }


@pytest.mark.parametrize(("skew", "share"), [(0, 1 / 204), (0.1, 1 / 204), (30, 0.3), (100, 1.0)])
def test_countries_are_uniform_but_for_the_hot_one(skew: float, share: float) -> None:
    counts = counts_of(
        keys_of(f"countries:skew={skew},messages=300000", 4), identities(list(COUNTRIES))
    )
    probabilities = np.full(204, (1 - share) / 203)
    probabilities[HOT] = share
    if share == 1:
        assert counts[HOT] == 300000
    else:
        assert chi_square(counts, probabilities) > 1e-4


def test_there_are_204_different_countries() -> None:
    assert len(set(COUNTRIES)) == len(COUNTRIES) == 204


@pytest.mark.parametrize(("half", "skewed"), [("first", 0), ("second", 1)])
def test_half_skew_holds_in_that_half_only(half: str, skewed: int) -> None:
    keys = keys_of(f"countries:skew=80,messages=200000,half={half}")
    hot = np.uint64(identity(COUNTRIES[HOT]))
    shares = [np.mean(part == hot) for part in np.split(keys, 2)]
    assert shares[skewed] == pytest.approx(0.8, abs=0.01)
    assert shares[1 - skewed] == pytest.approx(1 / 204, abs=0.002)


def test_drift_is_zipf_with_turned_ranks_in_every_period() -> None:
    keys, turn = 300, turn_of(300)
    drawn = keys_of("drift:z=1,keys=300,messages=300000,period=100000", 6)
    plain = keys_of("zipf:z=1,keys=300,messages=300000", 6)
    ranks = np.argmax(longs(1, keys)[None, :] == plain[::1000, None], axis=1)
    periods = np.arange(0, 300000, 1000) // 100000
    turned = (ranks + periods * turn) % keys
    assert np.array_equal(drawn[::1000], longs(1, keys)[turned])


def test_drift_makes_every_key_the_hottest_once() -> None:
    for keys in (1, 2, 6, 10, 97, 1000):
        assert len({(period * turn_of(keys)) % keys for period in range(keys)}) == keys


def test_spike_takes_its_share_above_a_zipf_tail() -> None:
    counts = counts_of(keys_of("spike:share=0.4,z=1.3,keys=200,messages=300000"), longs(0, 200))
    weights = np.arange(1, 201) ** -1.3
    assert chi_square(counts, np.append(0.4, 0.6 * weights / weights.sum())) > 1e-4


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("zipf:z=-1,keys=10,messages=10", "zipf:z must be at least 0, not -1"),
        ("zipf:z=nan,keys=10,messages=10", "zipf:z must be at least 0, not nan"),
        ("zipf:z=inf,keys=10,messages=10", "zipf:z must be a finite number, not inf"),
        ("zipf:z=1,keys=0,messages=10", "zipf:keys must be at least 1, not 0"),
        ("zipf:z=1,keys=10,messages=0", "zipf:messages must be at least 1, not 0"),
        ("zipf:z=1,keys=10", "needs messages"),
        ("lognormal:messages=5,sigma=-1", "lognormal:sigma must be at least 0"),
        ("lognormal:messages=5,mu=inf", "lognormal:mu must be a finite number"),
        ("countries:skew=101,messages=5", "per cent from 0 to 100, not 101"),
        ("countries:skew=50,messages=5,half=third", "first, none, second"),
        ("drift:z=1,keys=10,messages=5,period=0", "drift:period must be at least 1"),
        ("spike:share=1.5", "spike:share must be from 0 to 1, not 1.5"),
        ("zpif:z=1", "did you mean 'zipf'"),
        ("zipf:z=1,z=2,keys=10,messages=5", "gives z twice: give it once"),
        ("zipf:s=1", "Valid: keys, messages, z"),
    ],
)
def test_a_bad_parameter_is_one_clear_sentence(spec: str, sentence: str) -> None:
    with pytest.raises(SkewlessError, match=sentence) as caught:
        stream_of(spec)
    assert "\n" not in str(caught.value)
