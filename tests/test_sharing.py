"""What batches leave uneven is evened out later, however many sources each of them has."""

import numpy as np
import pytest

from skewless.hashing import identities
from skewless.schemes import Feedback, scheme_of
from skewless.schemes.check import send

BATCHES, MOST = 200, 20
SOURCES = {
    "always 5": [5] * BATCHES,
    "always 20": [MOST] * BATCHES,
    "1 to 20 at random": np.random.default_rng(7).integers(1, MOST + 1, BATCHES).tolist(),
    "1 and 20 in turn": [1, MOST] * (BATCHES // 2),
    "more and more": [1 + batch * MOST // BATCHES for batch in range(BATCHES)],
    "fewer and fewer": [MOST - batch * MOST // BATCHES for batch in range(BATCHES)],
    "20 at first, then 1": [MOST, MOST] + [1] * (BATCHES - 2),
}


def batches(scheme, plan, counts, messages, seed=0):
    """Each batch: the plan that follows it, what each worker was sent, and what was reported."""
    rng = np.random.default_rng(seed)
    for sources in counts:
        reports, sent = [], np.zeros(plan.start.size)
        for source in range(sources):
            keys = identities(rng.zipf(1.3, messages) % 5000)
            out, tally = send(scheme, plan, scheme.tally(plan, source), keys)
            reports.append(scheme.report(plan, tally))
            sent += np.bincount(out, minlength=plan.start.size)
        plan = scheme.replan_from(plan, reports, Feedback.none(plan.start.size))
        yield plan, sent, reports


@pytest.mark.parametrize("spec", ["graded", "partial:choices=4", "w-choices"])
@pytest.mark.parametrize("messages", [3, 40, 400])
@pytest.mark.parametrize("counts", SOURCES.values(), ids=SOURCES)
def test_loads_even_out_over_batches_of_any_number_of_sources(spec, messages, counts):
    scheme = scheme_of(spec)
    loads = sum(sent for _, sent, _ in batches(scheme, scheme.plan(10, 0), counts, messages))
    assert loads.max() - loads.mean() < 2 * MOST, "more than sources leave in a single batch"


def test_unequal_workers_even_out_over_batches_of_any_number_of_sources():
    scheme, rates = scheme_of("graded"), np.array([5.0] * 3 + [1.0] * 7) / 2.2
    for name in ("1 to 20 at random", "1 and 20 in turn"):
        learned = batches(scheme, scheme.plan(10, 0, rates), SOURCES[name], 200)
        loads = sum(sent for _, sent, _ in learned) / rates
        assert loads.max() - loads.mean() < 2 * MOST


@pytest.mark.parametrize("spec", ["partial", "d-choices", "w-choices"])
def test_shares_of_the_sources_sum_to_all_that_is_uneven(spec):
    scheme, loads = scheme_of(spec), np.zeros(6)
    counts = [3, 1, 8, 2, 2, 5]
    for plan, sent, _ in batches(scheme, scheme.plan(6, 1), counts, 50):
        loads += sent
        np.testing.assert_allclose(plan.start * plan.sources, loads - loads.min())


def test_sources_that_sent_nothing_get_no_share():
    scheme = scheme_of("graded")
    plan = scheme.plan(4, 0)
    [(after, _, [report])] = batches(scheme, plan, [1], 30)
    idle = scheme.report(plan, scheme.tally(plan, 1))
    beside = scheme.replan_from(plan, [report, idle, idle], Feedback.none(4))
    assert beside.sources == after.sources == 1
    np.testing.assert_array_equal(beside.start, after.start)
    assert scheme.replan(after, idle, Feedback.none(4)) is after


def test_as_many_sources_are_expected_as_came_lately_at_the_most():
    scheme = scheme_of("partial")
    counts = [20, 10, 10, 10, 10, 20, 10]
    expected = [plan.sources[0] for plan, _, _ in batches(scheme, scheme.plan(4, 0), counts, 9)]
    assert expected == pytest.approx([20, 18, 16.2, 14.58, 13.122, 20, 18])


def test_a_plan_that_does_not_say_its_number_of_sources_was_made_for_as_many_as_now():
    scheme = scheme_of("partial")
    plan = scheme.plan(2, 0)._replace(start=np.array([3.0, 0.0]))  # of a version before
    report = scheme.report(plan, scheme.tally(plan, 0))
    report = report._replace(loads=np.array([1.0, 9.0]), sources=np.array([4]))
    after = scheme.replan(plan, report, Feedback.none(2))
    assert (after.start * after.sources).tolist() == [3 * 4 + 1 - 9, 0]
