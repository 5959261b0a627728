"""The balance simulator against direct counting, and the figures that must be seen."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skewless
from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import scheme_of
from skewless.schemes.partial import PartialKeyGrouping
from skewless.simulate.balance import Case, LoadRecorder, balance, balance_all
from skewless.simulate.replication import PairCounter
from skewless.simulate.sources import Estimate, Sources
from skewless.streams import Chunk, Stream
from tests.naive import TWINS
from tests.naive.hashing import choices, source_of
from tests.naive.off_greedy import learned_route

ZIPF = "zipf:z=1.0,keys=10000,messages=1000000"


@dataclass(frozen=True)
class Listed(Stream):
    """A stream of given keys, in chunks of a given size."""

    keys: tuple[int, ...]
    size: int = 100
    name: ClassVar[str] = "listed"

    def produce(self, seed, source_column):
        array = np.array(self.keys, np.uint64)
        for start in range(0, array.size, self.size):
            part = array[start : start + self.size]
            yield Chunk(part, part % 7 if source_column else None)


@pytest.mark.parametrize("scheme", ["partial", "shuffle", "potc"])
def test_each_source_routes_on_its_own_tally(scheme):
    keys = (np.random.default_rng(1).zipf(1.3, 1000) % 50).astype(np.uint64)
    routed = skewless.route(keys, scheme, 7, sources=3, seed=5)
    for source in range(3):
        alone = TWINS[scheme].route(scheme_of(scheme), keys[source::3].tolist(), 7, 5, source)
        assert routed[source::3].tolist() == alone


def test_chunks_of_any_size_give_the_same_result():
    keys = tuple(int(k) for k in np.random.default_rng(2).zipf(1.3, 3000) % 90)
    small = balance(Listed(keys, 7), "partial", 5, sources=3, estimate="probe:10")
    large = balance(Listed(keys, 2000), "partial", 5, sources=3, estimate="probe:10")
    assert small.loads == large.loads
    assert small.replication == large.replication
    assert np.array_equal(small.checkpoint_excesses, large.checkpoint_excesses)


def test_a_source_key_keeps_its_messages_at_one_source():
    keys = np.arange(1000, dtype=np.uint64)
    system = Sources(scheme_of("shuffle"), 4, 3, 0, Estimate())
    routed = system.route(keys, keys % 7)
    # Seven source keys on three sources, each a round robin of its own.
    sent = Counter()
    owners = [source_of(key, 3, 0) for key in range(7)]
    for key, worker in zip(keys.tolist(), routed.tolist(), strict=True):
        source = owners[key % 7]
        assert worker == (source + sent[source]) % 4
        sent[source] += 1
    assert len(sent) > 1


def test_a_source_key_keeps_its_source_however_the_stream_is_cut():
    keys = (np.random.default_rng(1).zipf(1.3, 3000) % 50).astype(np.uint64)

    def routed(scheme, every):
        return Sources(scheme_of(scheme), 4, 3, 0, Estimate(probe_every=every)).route(
            keys, keys % 7
        )

    # Probes cut a chunk into pieces, and a round robin hears nothing of them.
    assert routed("shuffle", 10).tolist() == routed("shuffle", 0).tolist()
    for size in (7, 1000):
        stream, given = Listed(tuple(keys.tolist()), size), {"source_column": "s"}
        seen = balance(stream, "partial", 4, sources=3, estimate="probe:10", **given)
        assert seen.loads == np.bincount(routed("partial", 10), minlength=4).tolist()


def test_what_a_plan_is_learned_from_is_not_routed():
    seen = balance("zipf:z=1,keys=100,messages=2000", "distribution-aware:learn=500", 5)
    assert (seen.learned, seen.messages, sum(seen.loads)) == (500, 1500, 1500)


def test_the_source_of_a_key_says_nothing_of_its_choices():
    keys = range(3000)
    same = sum(source_of(key, 10, 0) == choices(key, 10, 1, 0)[0] for key in keys)
    assert 200 < same < 400


def test_the_oracle_shares_one_tally():
    keys = (np.random.default_rng(3).zipf(1.2, 500) % 40).astype(np.uint64)
    system = Sources(scheme_of("partial"), 6, 5, 0, Estimate(shared=True))
    alone = TWINS["partial"].route(scheme_of("partial"), keys.tolist(), 6, 0, 0)
    assert system.route(keys).tolist() == alone


def test_a_probe_sets_every_source_to_its_share_of_the_true_loads():
    keys = (np.random.default_rng(4).zipf(1.2, 30) % 40).astype(np.uint64)
    system = Sources(scheme_of("partial"), 6, 3, 0, Estimate(probe_every=30))
    loads = np.bincount(system.route(keys), minlength=6)
    for tally in system.tallies:
        assert tally.loads == pytest.approx(loads / 3)


def test_offline_greedy_packs_by_true_frequency():
    keys = (np.random.default_rng(5).zipf(1.2, 800) % 60).astype(np.uint64)
    assert skewless.route(keys, "off-greedy", 5).tolist() == learned_route(keys.tolist(), 5)
    assert skewless.route(keys, "off-greedy", 5, sources=4).tolist() == learned_route(
        keys.tolist(), 5
    )


@given(st.lists(st.integers(0, 4), min_size=1, max_size=400), st.integers(1, 100))
def test_checkpoints_record_max_minus_mean(workers, piece):
    recorder = LoadRecorder(5)
    array = np.array(workers, np.int32)
    for start in range(0, array.size, piece):
        recorder.add(array[start : start + piece])
    at, excesses = recorder.checkpoints()
    for place, excess in zip(at, excesses, strict=True):
        loads = np.bincount(array[:place], minlength=5)
        assert excess == pytest.approx(loads.max() - place / 5)
    assert recorder.loads.tolist() == np.bincount(array, minlength=5).tolist()


def test_loads_of_unequal_and_changing_workers_are_measured_by_their_capacities():
    recorder = LoadRecorder(2, np.array([3.0, 1.0]))
    recorder.add(np.array([0, 0, 1, 0] * 500, np.int32))
    recorder.change(np.array([1.0, 1.0]))
    recorder.add(np.array([0, 1] * 500, np.int32))
    at, excesses = recorder.checkpoints()
    assert excesses[at >= 100] == pytest.approx(0, abs=3)
    assert (recorder.fair / 2).tolist() == [2000, 1000] == recorder.loads.tolist()


def test_checkpoints_stay_bounded_and_evenly_spaced_on_a_long_stream():
    recorder = LoadRecorder(2)
    for _ in range(100):
        recorder.add(np.tile(np.array([0, 1, 0], np.int32), 5000))
    at, excesses = recorder.checkpoints()
    assert 1024 <= at.size <= 2048
    assert len(set(np.diff(at))) == 1
    assert excesses == pytest.approx(at / 6, abs=1)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 64, 65, 200]), st.integers(1, 9000))
def test_pairs_are_counted_exactly_with_and_without_room(seed, workers, count):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 6000, count).astype(np.uint64) * np.uint64(2**40 + 1)
    routed = rng.integers(0, workers, count).astype(np.int32)
    expected = len(set(zip(keys.tolist(), routed.tolist(), strict=True)))
    smallest = (1 << 12) * 8 * (1 + (workers + 63) // 64) * 3 // 2
    for limit in (smallest, 1 << 30):
        counter = PairCounter(workers, limit)
        counter.add(keys[: count // 2], routed[: count // 2])
        counter.add(keys[count // 2 :], routed[count // 2 :])
        assert counter.count() == (len(set(keys.tolist())), expected)


def test_counting_writes_to_disk_only_beyond_its_limit_and_stays_exact():
    keys = np.arange(100_000, dtype=np.uint64)
    for workers, limit in ((8, 1 << 18), (8, 1 << 30), (130, 1 << 30)):
        counter = PairCounter(workers, limit)
        # Both pairs of a key at once, so that a table that grows has to keep them.
        pairs = np.tile(np.array([1, workers - 1], np.int32), keys.size)
        counter.add(np.repeat(keys, 2), pairs)
        assert counter.spilled == (limit < 1 << 30)
        assert counter.count() == (100_000, 200_000)


def test_too_small_a_limit_is_one_sentence():
    with pytest.raises(SkewlessError, match="needs a limit of at least"):
        PairCounter(8, 100)


def test_the_figures_of_one_million_messages_and_ten_thousand_keys():
    cases = [Case(s, w, 5) for s in ("key", "partial", "shuffle") for w in (10, 50)]
    key10, _, partial10, partial50, shuffle10, shuffle50 = balance_all(ZIPF, cases)
    assert 0.03 < key10.imbalance < 0.3
    assert partial10.imbalance <= 2e-5
    assert 2e-2 < partial50.imbalance < 4e-2
    assert max(shuffle10.imbalance, shuffle50.imbalance) <= 1e-5
    assert shuffle10.replication > 2 * partial10.replication
    assert key10.replication == 1


def test_more_choices_restore_balance_at_z_1_2():
    stream = "zipf:z=1.2,keys=1000000,messages=2000000"
    depths = {10: (2, 3), 40: (7, 8)}
    cases = [Case(f"partial:choices={d}", w, 5) for w in depths for d in depths[w]]
    broken10, even10, broken40, even40 = (
        r.average_imbalance for r in balance_all(stream, cases, replication=False)
    )
    assert broken10 > 1e-4
    assert broken40 > 5e-4
    assert max(even10, even40) < 1e-5


def test_local_estimation_is_close_to_the_oracle_and_probing_no_better():
    cases = [Case("partial", 10, 5, e) for e in ("global", "local", "probe:10000")]
    oracle, local, probed = (
        r.average_imbalance for r in balance_all(ZIPF, cases, replication=False)
    )
    assert local < 10 * max(oracle, 1e-6)
    assert probed > local / 2


def test_nothing_to_route_is_one_sentence():
    with pytest.raises(SkewlessError, match="is empty"):
        balance(Listed(()), "key", 3)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"workers": 0}, "workers must be at least 1"),
        ({"workers": 10**20}, "workers must be at most 1,000,000"),
        ({"sources": 10**6}, "sources must be at most 10,000"),
        ({"scheme": "consistent:virtual=100000"}, "1 to 1,000 virtual workers per worker"),
        ({"sources": 0}, "sources must be at least 1"),
        ({"estimate": "guess"}, "local, global or probe:T"),
        ({"estimate": "probe:0"}, "local, global or probe:T"),
        ({"seed": -1}, "A seed is"),
        ({"seed": 0.5}, "A seed is a whole number, not 0.5"),
        ({"workers": "4"}, "The number of workers is a whole number, not '4'"),
        ({"sources": 1.5}, "The number of sources is a whole number, not 1.5"),
        ({"estimate": 3}, "local, global or probe:T"),
        ({"scheme": None}, "A scheme is one of skewless.schemes or a text .*, not None"),
        ({"scheme": PartialKeyGrouping}, "A scheme is one of .*, not <class"),
        ({"stream": [1, 2]}, r"A stream is one of skewless.streams or a text .*, not \[1, 2\]"),
        ({"scheme": "parial"}, "did you mean 'partial'"),
        ({"scheme": "partial:choice=3"}, "did you mean 'choices'"),
        ({"scheme": "partial:choices=9"}, "needs at least 9 workers"),
        ({"scheme": "partial:choices=0"}, "at least 1 choice"),
        ({"scheme": "partial:choices=2.5"}, "a whole number"),
        ({"scheme": "partial:5"}, "param=value"),
        ({"stream": "zipf:z=1"}, "needs keys, messages"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, sentence):
    stream = arguments.pop("stream", "zipf:z=1,keys=10,messages=10")
    scheme = arguments.pop("scheme", "partial")
    workers = arguments.pop("workers", 4)
    with pytest.raises(SkewlessError, match=sentence):
        balance(stream, scheme, workers, **arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda keys: balance(keys, "partial", 3),
        lambda keys: skewless.route("partial", keys, 3),
        lambda keys: skewless.route([1], "partial", keys),
    ],
)
def test_keys_in_the_place_of_another_argument_do_not_make_the_sentence_long(call):
    with pytest.raises(SkewlessError, match=r"not \[0, 1, 2, 3, 4, 5, \.\.\.\]\.$"):
        call(list(range(10**5)))


def test_whole_numbers_of_numpy_are_seeds_and_numbers_of_workers():
    keys = np.arange(100, dtype=np.uint64)
    ours = skewless.route(keys, "partial", np.int64(4), sources=np.int32(2), seed=np.int64(3))
    assert ours.tolist() == skewless.route(keys, "partial", 4, sources=2, seed=3).tolist()
    skewed = "zipf:z=1,keys=100,messages=1000"
    ours = balance(skewed, "partial", np.int64(4), sources=np.int32(2), seed=np.int64(3))
    theirs = balance(skewed, "partial", 4, sources=2, seed=3)
    assert ours.loads == theirs.loads
    json.dumps(ours.as_json())


@pytest.mark.parametrize("name", ["w-choices", "consistent", "bounded-hash", "off-greedy"])
def test_a_small_integer_of_numpy_counts_as_many_workers_as_it_says(name):
    keys = np.random.default_rng(1).zipf(1.3, 3000).astype(np.uint64)
    ours = skewless.route(keys, name, np.uint8(200), sources=np.uint8(3))
    assert ours.tolist() == skewless.route(keys, name, 200, sources=3).tolist()


def test_values_are_routed_as_spark_hashes_them_and_identities_as_they_are():
    numbers = np.arange(-50, 50)
    words = [f"w{i}" for i in range(100)]
    for values in (numbers, numbers.astype(np.int32), words, pa.array([*words[:-1], None])):
        routed = skewless.route(values, "key", 7)
        assert routed.tolist() == skewless.route(identities(values), "key", 7).tolist()
    with pytest.raises(SkewlessError):
        skewless.route([object()], "key", 7)
