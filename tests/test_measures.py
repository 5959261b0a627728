"""Every measure on small cases that can be checked by hand."""

import numpy as np
import pytest

from skewless import measures

LOADS = np.array([4, 2, 1, 1])


def test_imbalance_is_max_minus_mean_over_all_messages():
    assert measures.imbalance(LOADS) == (4 - 2) / 8
    assert measures.imbalance(np.zeros(3)) == 0


def test_unequal_machines_count_by_their_share():
    fair = np.array([6, 2, 2, 2])
    assert measures.imbalance(fair, np.array([3, 1, 1, 1])) == pytest.approx(0)
    assert measures.imbalance(LOADS, np.ones(4)) == measures.imbalance(LOADS)


def test_percent_imbalance_is_lambda():
    assert measures.percent_imbalance(LOADS) == pytest.approx((4 / 2 - 1) * 100)


def test_average_imbalance_is_the_mean_of_the_checkpoints_over_all_messages():
    assert measures.average_imbalance(np.array([1.0, 3.0]), 100) == 0.02
    assert measures.average_imbalance(np.array([]), 100) == 0


def test_standard_deviation_in_messages_and_in_per_cent():
    assert measures.stddev(LOADS) == pytest.approx(np.sqrt(1.5))
    assert measures.stddev_percent(LOADS) == pytest.approx(np.std([50, 25, 12.5, 12.5]))
    assert measures.stddev_percent(np.zeros(2)) == 0


def test_replication_bound_gives_a_key_as_many_workers_as_its_share_fills():
    assert measures.replication_bound(np.array([50, 25, 25]), 4) == (2 + 1 + 1) / 3
    assert measures.replication_bound(np.array([50, 25, 25]), 4, slack=1.0) == 1
    assert measures.replication(6, 4) == 1.5


def test_disagreement_is_the_share_of_differing_routes():
    assert measures.disagreement(np.array([1, 2, 3, 4]), np.array([1, 2, 0, 0])) == 0.5


def test_speed_up_is_how_many_times_faster():
    assert measures.speed_up(3.0, 2.0) == 1.5
