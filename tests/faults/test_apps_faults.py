"""An executor dies amid an application: its answer is the same as if none had."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.faults.cluster_job import ROWS
from tests.faults.test_faults import finish, stages_run_again, start

pytestmark = pytest.mark.timeout(1900)


def word(i):
    return "hot" if i % 3 == 0 else None if i % 5 == 0 else f"w{i % 101}"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("apps")
    finish(start("tests.faults.apps_job", folder), folder, 1800)
    return folder, json.loads((folder / "result.json").read_text())


def test_an_executor_was_killed_amid_each_and_stages_ran_again(done):
    folder, result = done
    assert all(one["killed"] for one in result.values())
    assert len(stages_run_again(folder, streaming=False)) >= 2


def test_heavy_hitters_are_exact_although_an_executor_was_killed(done):
    truth = Counter(word(i) for i in range(ROWS))
    found = {w: (count, error) for w, count, error in done[1]["heavy hitters"]["found"]}
    assert found == {w: (n, 0) for w, n in truth.items() if n >= ROWS * 0.001}
    assert len(found) > 100


def test_the_counts_of_naive_bayes_are_exact_although_an_executor_was_killed(done):
    truth = Counter()
    for i in range(ROWS):
        label = "x" if i % 7 < 5 else "y"
        truth[None, None, label] += 1
        truth["id_of_day", str(i % 3), label] += 1
        if word(i) is not None:
            truth["w", word(i), label] += 1
    assert {tuple(row[:3]): row[3] for row in done[1]["naive Bayes"]["found"]} == truth
