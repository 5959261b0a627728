"""The papers' figures in their smallest size: claims that must be seen are seen."""

import numpy as np
import pytest

from skewless.papers import EXPERIMENTS
from skewless.papers.distribution_aware.on_spark import soccer
from skewless.papers.distribution_aware.runs import TO_JUDGE, Run, draw, judge
from skewless.results import Setting, at_least, at_most, between

QUICK = (
    "distribution-aware-table1",
    "distribution-aware-fig9",
    "distribution-aware-fig13",
    "distribution-aware-drift",
    "choices-skew",
    "graded-planned",
    "partial-applications",
)


@pytest.mark.parametrize("name", QUICK)
def test_what_must_be_seen_is_seen_in_the_quick_size(name):
    done = []
    result = EXPERIMENTS[name](Setting(quick=True, step=done.append))
    assert result.name == name
    assert result.checks
    assert result.holds, [check for check in result.checks if not check.holds]
    assert result.rows
    assert result.panels
    assert done


def test_a_figure_out_of_bounds_does_not_hold():
    assert at_least("x", 2.0, 2.0).holds
    assert not at_least("x", 1.0, 2.0).holds
    assert not at_most("x", 3.0, 2.0).holds
    assert [between("x", seen, 1.0, 2.0).holds for seen in (0.9, 1.0, 2.0, 2.1)] == [
        False, True, True, False
    ]  # fmt: skip


def test_as_many_streams_as_asked_for():
    rows = EXPERIMENTS["distribution-aware-fig7"](Setting(streams=3)).rows
    assert {row["streams"] for row in rows} == {3}


def test_streams_share_neither_values_nor_their_order_of_frequency():
    one, other = draw(2.0, 1), draw(2.0, 2)
    assert np.intersect1d(one.keys, other.keys).size < 0.1 * one.keys.size
    assert one.judged.size == TO_JUDGE == one.counts.sum()
    assert (draw(2.0, 1).judged == one.judged).all()
    # The hottest value has its share of Zipf-2: 1 / ζ(2).
    assert one.counts.max() / TO_JUDGE == pytest.approx(0.608, abs=0.015)


def test_judging_by_distinct_keys_equals_judging_message_by_message():
    drawn = draw(1.0, 5)
    loads = judge(Run("universal", 6), drawn, 9)
    every = drawn._replace(keys=drawn.judged, counts=np.ones(TO_JUDGE))
    assert loads.tolist() == judge(Run("universal", 6), every, 9).tolist()


def test_a_soccer_match_has_four_cells_a_reading_and_a_fifth_in_the_hottest():
    cells = soccer(4000, 1)
    assert cells.size == 16_000
    assert (cells.reshape(-1, 4) // 10**6 == np.arange(4)).all()
    shares = np.sort(np.unique(cells, return_counts=True)[1])[::-1] / cells.size
    assert shares[:4] == pytest.approx([0.2] * 4, abs=0.02)
    assert shares[4] < 0.05
