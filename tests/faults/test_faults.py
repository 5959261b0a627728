"""Processes die amid the work: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skewless.schemes import scheme_of
from skewless.spark.adapt.plans import stream_folder
from tests import sparks
from tests.faults.cluster_job import BATCHES, ROWS

ROOT = Path(__file__).parents[2]

# Drivers start anew again and again, each with kernels to compile on a machine that may be busy. A
# limit that is reached ends all tests, so this one is for what would never end.
pytestmark = pytest.mark.timeout(5400)


def start(module, folder, **more):
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
    }
    log = (folder / "log.txt").open("ab")
    return subprocess.Popen(
        [sys.executable, "-m", module, str(folder)],
        cwd=ROOT, env=environment, stdout=log, stderr=log, **more,
    )  # fmt: skip


def finish(process, folder, timeout_s):
    try:
        code = process.wait(timeout_s)
    finally:
        kill(process)
    assert code == 0, (folder / "log.txt").read_text()[-3000:]


def kill(process):
    """The driver with its Java process and all that they started, at once."""
    members = family(process)
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    psutil.wait_procs(members, timeout=20)


def family(process):
    """It and all that it and its children started; nothing if it has ended."""
    try:
        root = psutil.Process(process.pid)
        return [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    finish(start("tests.faults.cluster_job", folder), folder, 1800)
    return folder, json.loads((folder / "result.json").read_text())


def expected_totals():
    totals = {}
    for i in range(ROWS):
        key = "hot" if i % 3 == 0 else None if i % 5 == 0 else f"w{i % 101}"
        count, total = totals.get(key, (0, 0))
        totals[key] = count + 1, total + i
    return sorted(([k, c, s] for k, (c, s) in totals.items()), key=str)


def stages_run_again(folder, streaming):
    """Stages that Spark submitted a second time, of the stream or of the batch job."""
    (log,) = [path for path in (folder / "events").iterdir() if path.is_file()]
    again = []
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] != "SparkListenerStageSubmitted":
            continue
        of_stream = "streaming.sql.batchId" in (event.get("Properties") or {})
        if of_stream == streaming and event["Stage Info"]["Stage Attempt ID"] >= 1:
            again.append(event["Stage Info"]["Stage ID"])
    return again


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_totals_are_exact_when_an_executor_is_killed_amid_the_folds(cluster, kind):
    folder, result = cluster
    assert result[kind]["killed"], "no executor was killed"
    assert stages_run_again(folder, streaming=kind == "stream"), "no stage was run again"
    assert sorted(result[kind]["totals"], key=str) == expected_totals()


def test_the_observer_counts_every_message_once_although_a_stage_ran_again(cluster):
    _, result = cluster
    observed = {batch: messages for batch, messages, _ in result["observed"]}
    assert len(result["observed"]) == 1 + BATCHES, "a batch was recorded twice"
    assert observed == {None: ROWS, **dict.fromkeys(range(BATCHES), ROWS // BATCHES)}
    assert all(sum(loads) == messages for _, messages, loads in result["observed"])


@pytest.mark.skipif(
    sparks.SPARK < (4, 3), reason="an older Spark adds up all attempts of a stage in observe"
)
def test_an_observation_of_ones_own_counts_the_last_attempt_of_a_stage_only(cluster):
    _, result = cluster
    assert result["batch"]["observed_rows"] == ROWS
    assert result["stream"]["observed_rows"] == [ROWS // BATCHES] * BATCHES


WINDOW_S = 600
ORIGIN = datetime(2024, 1, 1, tzinfo=UTC)


def write_stream(folder, files=6, count=1000):
    """Files in order of time, the last of them far ahead, so that all windows before end."""
    (folder / "in").mkdir()
    random = np.random.default_rng(1)
    expected = Counter()
    for number in range(files):
        minutes = np.sort(random.uniform(number * 7, (number + 1) * 7, count)).tolist()
        words = [f"w{r}" for r in (random.zipf(1.5, count) % 9).tolist()]
        if number == files - 1:
            minutes, words = [10_000.0], ["end"]
        times = [ORIGIN + timedelta(minutes=m) for m in minutes]
        for time_, word in zip(times, words, strict=True):
            if word != "end":
                expected[int(time_.timestamp()) // WINDOW_S * WINDOW_S, word] += 1
        table = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "w": words})
        pq.write_table(table, folder / "in" / f"{number:03}.parquet")
    return expected


def last_batch(folder, log):
    numbers = [int(p.name) for p in (folder / "checkpoint" / log).glob("[0-9]*")]
    return max(numbers, default=-1)


def killed_amid(process, folder, batch):
    """Kill it if it is amid this batch; it stands still meanwhile, so that it stays there."""
    members = family(process)
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.suspend()
    amid = last_batch(folder, "offsets") >= batch > last_batch(folder, "commits")
    if amid:
        kill(process)
        return True
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.resume()
    return False


def kill_amid_a_batch(folder, least):
    """Start the driver, and kill it while a batch from `least` on is running."""
    process = start("tests.faults.driver_job", folder)
    ends_s = time.monotonic() + 900
    while time.monotonic() < ends_s:
        assert process.poll() is None, (folder / "log.txt").read_text()[-3000:]
        begun = (folder / "checkpoint" / "skewless" / "batches").glob("[0-9]*")
        running = max((int(p.name) for p in begun), default=-1)
        if running >= least and killed_amid(process, folder, running):
            return last_batch(folder, "commits")
        time.sleep(0.01)
    kill(process)
    raise AssertionError("no batch began: " + (folder / "log.txt").read_text()[-3000:])


@pytest.mark.skipif(
    sparks.SCHEME_OF_STREAMS == "key", reason="a stream that learns needs Spark 4.1 or later"
)
def test_a_stream_is_exact_although_its_driver_is_killed_again_and_again(tmp_path):
    expected = write_stream(tmp_path)
    committed = [kill_amid_a_batch(tmp_path, least) for least in (0, 1, 3)]
    assert committed == sorted(set(committed)), "a restart went back"
    finish(start("tests.faults.driver_job", tmp_path), tmp_path, 1800)
    rows = json.loads((tmp_path / "result.json").read_text())
    found = {(start_s, word): count for start_s, word, count in rows}
    assert len(rows) == len(found), "a window came out twice"
    assert found == dict(expected)
    folder = stream_folder(str(tmp_path / "checkpoint"), scheme_of("partial"), 4, 0)
    newest = max(int(p.stem) for p in (tmp_path / "checkpoint/skewless/plans").glob("[0-9]*.npz"))
    # Six files of 1,000 messages, of which the plan after the last but one knows five; a killed
    # driver may take with it what one batch taught.
    assert folder.used(newest).loads.sum() >= 1000 * (5 - len(committed)), "restarts forget"
