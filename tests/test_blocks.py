"""Routers that work on blocks of messages do what one message after the other does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewless.schemes import scheme_of
from skewless.schemes.check import skewed
from skewless.schemes.d_choices import FEW
from tests.naive import d_choices as twin

streams = st.builds(
    lambda seed, z, keys, n: np.random.default_rng(seed).zipf(z, n).astype(np.uint64) % keys,
    st.integers(0, 2**32),
    st.floats(1.05, 3.0),
    st.integers(1, 400),
    st.integers(0, 1500),
)
# Ones, weights of several sizes, some that count nothing, and nothing else.
weighings = st.sampled_from(
    [np.ones_like, lambda at: 1 + at * 7919 % 7 * 0.25, lambda at: at % 2, np.zeros_like]
)
# Half-lives with which the gain passes its limit within a block, between blocks, and never.
half_lives = st.sampled_from([None, 1.0, 5.0, 300.0])


def routed(scheme, plan, keys, weights):
    out, times = np.empty(keys.size, np.int32), np.arange(keys.size, dtype=float)
    tally = scheme.tally(plan, 0)
    scheme.send(plan, tally, keys, times, out, weights)
    return out.tolist(), tally


@pytest.mark.parametrize("name", ["w-choices", "d-choices", "graded"])
@settings(max_examples=20)
@given(
    keys=streams,
    workers=st.sampled_from([1, 2, 3, 7, 70, 130]),
    weighing=weighings,
    half_life=half_lives,
)
def test_blocks_are_routed_as_their_messages_would_be(name, keys, workers, weighing, half_life):
    scheme = scheme_of(f"{name}:half_life={half_life}" if half_life else name)
    plan, weights = scheme.plan(workers, 1), weighing(np.arange(float(keys.size)))
    out, _ = routed(scheme, plan, keys, weights)
    tally = scheme.tally(plan, 0)
    pairs = zip(keys, weights, strict=True)
    assert out == [scheme.choose(plan, tally, key, weight, 0.0) for key, weight in pairs]


@pytest.mark.parametrize("name", ["w-choices", "d-choices"])
@settings(max_examples=20)
@given(keys=streams, weighing=weighings, half_life=half_lives, cut=st.integers(0, 1500))
def test_a_source_may_route_blocks_and_choose_for_single_messages(
    name, keys, weighing, half_life, cut
):
    scheme = scheme_of(f"{name}:half_life={half_life}" if half_life else name)
    plan, weights = scheme.plan(5, 1), weighing(np.arange(float(keys.size)))
    expected, _ = routed(scheme, plan, keys, weights)
    out, tally = routed(scheme, plan, keys[:cut], weights[:cut])
    for key, weight in zip(keys[cut : cut + 50], weights[cut : cut + 50], strict=True):
        out.append(scheme.choose(plan, tally, key, weight, 0.0))
    rest = np.empty(max(0, keys.size - len(out)), np.int32)
    at = slice(len(out), None)
    scheme.send(plan, tally, keys[at], np.zeros(rest.size), rest, weights[at])
    assert out + rest.tolist() == expected


@pytest.mark.parametrize("workers", [20, 200])
def test_few_choices_and_many_both_find_the_least_loaded_one(workers):
    scheme, keys = scheme_of("d-choices:refresh=500"), skewed(2000, 0)
    plan = scheme.plan(workers, 0)
    out, tally = routed(scheme, plan, keys, np.ones(1))
    assert (tally.choices[0] > FEW) == (workers == 200)
    assert tally.choices[0] > 2
    assert out == twin.route(scheme, keys.tolist(), workers, 0, 0)
