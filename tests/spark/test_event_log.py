"""Event logs that this Spark writes, by jobs whose skew is known; in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skewless.diagnose.event_log.log import diagnose_log
from tests.spark.conftest import ON_CONNECT

JOBS = Path(__file__).parents[1] / "event_logs" / "jobs.py"
pytestmark = [
    pytest.mark.timeout(2400),  # the jobs run in the first test's time
    pytest.mark.skipif(ON_CONNECT, reason="the jobs are the same there"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs") / "log"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, str(JOBS), str(folder), "0.006"],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=2300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder, json.loads(done.stdout.splitlines()[-1])


def test_the_right_stages_operators_and_columns_are_named(written):
    folder, truth = written
    found = diagnose_log(folder)
    assert not found.cut
    by_column = {s.columns[0]: s for s in found.stages if len(s.columns) == 1}
    for operator in ("join", "python", "window"):
        stage = by_column[truth[operator]["column"]]
        assert (stage.operator, stage.cause) == (operator, "skew of records")
        # Even on a busy machine a skewed stage cannot lose much less than it must.
        assert stage.lost_s > 0.7 * (truth[operator]["took_s"] - truth[operator]["even_s"])
    assert by_column["part"].cause == "costly key"
    assert by_column["word"].operator == "aggregate"
    assert by_column["device"].batch == 0
    assert found.failed_jobs == 1


def test_a_log_of_this_spark_that_is_cut_off_is_read_as_far_as_it_goes(written, tmp_path):
    # The log is a folder of several files by default, and one file before Spark 4.0.
    files = (path for path in written[0].rglob("*") if path.is_file())
    data = max(files, key=lambda path: path.stat().st_size).read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(data[: 2 * len(data) // 3])
    found = diagnose_log(cut)
    assert found.cut
    assert found.stages
