"""A really slower machine: its worker ends with less of the work, and results stay exact."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain

import pytest

from tests import sparks
from tests.faults.test_faults import finish, start
from tests.faults.unequal_job import BATCHES, SLOWED, WORKERS, keys


@pytest.mark.timeout(1900)
@pytest.mark.skipif(sparks.SPARK < (4, 1), reason="a stream that learns needs Spark 4.1 or later")
def test_a_slowed_executors_worker_ends_with_fewer_virtual_workers(tmp_path):
    finish(start("tests.faults.unequal_job", tmp_path), tmp_path, 1800)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["totals"] == Counter(chain(*map(keys, range(BATCHES))))
    at = {name.rpartition("-")[0]: pid for name, pid in result["executors"].items()}
    homes = {at[f"0-{worker}"] for worker in range(WORKERS)}
    assert len(homes) == WORKERS, "two workers shared an executor"
    for batch in range(BATCHES):
        assert at[f"{batch}-{SLOWED}"] == at[f"0-{SLOWED}"], "a worker left its state's executor"
    first, last = result["virtual_workers"][0], result["virtual_workers"][-1]
    assert (first, sum(last)) == ([10] * WORKERS, 10 * WORKERS)
    assert last[SLOWED] == min(last) <= 7
