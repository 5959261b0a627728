"""A short round of the campaign, of one seed; `make chaos MINUTES=n SEED=s` runs longer ones."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from skewless.apps.learning import Learned, LearningFolder
from tests.chaos import damage, stream_job
from tests.chaos.outcome import Outcome, table
from tests.chaos.streams import Setting
from tests.faults.test_faults import kill

ROOT = Path(__file__).parents[2]


def test_damaged_files_give_one_sentence_or_do_no_harm():
    drawn = random.Random(1)
    found = [damage.damaged_files(drawn, 25) for _ in range(8)]
    assert [outcome for outcome in found if not outcome.good] == []
    faults = sum((outcome.faults for outcome in found), Outcome("").faults)
    assert faults["flipped bit"] + faults["truncated file"] == 200


@pytest.mark.parametrize("seed", range(3))
def test_bad_disks_give_one_sentence_or_do_no_harm(seed):
    try:
        found = damage.bad_disks(random.Random(seed))
    except PermissionError as error:
        pytest.skip(f"no disk may be mounted here: {error}")
    assert found.broken == []
    assert found.faults == {"full disk": 1, "read-only disk": 1}


def test_plans_and_models_are_about_to_get_their_names_when_a_driver_stops(tmp_path, monkeypatch):
    seen = []

    def pause(folder, setting, where, batch):
        there = {"plan": f"c/skewless/plans/{batch}.npz", "learned": f"m/{batch}.arrow"}[where]
        seen.append((where, batch, (tmp_path / there).exists()))

    monkeypatch.setattr(stream_job, "pause", pause)
    for module in stream_job.NAMING:
        monkeypatch.setattr(module, "os", os)  # puts it back in the end
    stream_job.watch(stream_job.Watched(tmp_path, Setting("fold")))
    damage.learned(tmp_path / "c", "d-choices", random.Random(1))
    model = LearningFolder(str(tmp_path / "m"), {})
    model.keep(Learned(5, pa.table({"n": [1]}), {}))
    assert seen == [*(("plan", n, False) for n in range(4)), ("learned", 5, False)]
    assert (tmp_path / "c/skewless/plans/3.npz").exists()
    assert model.newest().batch == 5


def test_a_traceback_would_be_seen():
    outcome = Outcome("none")
    damage.attempt(outcome, lambda: int("x"))
    assert not outcome.good


def test_what_is_lost_and_what_comes_twice_is_counted():
    outcome = Outcome("none")
    outcome.compare({"a": 3, "b": 1}, {"a": 2, "b": 4, "c": 1})
    assert (outcome.twice, outcome.lost) == (1, 4)
    assert "| none | 1 | none | 4 | 1 |" in table([outcome])


@pytest.mark.parametrize("kept", range(6))
def test_no_damage_of_a_batch_s_file_ends_in_a_traceback(tmp_path, kept):
    folder = damage.learned(tmp_path, "partial", random.Random(1))
    (folder.root / "batches" / "2").write_bytes([b"", b"x", b"\xff", b"1.5", b"99", b"-1"][kept])
    outcome = Outcome("none")
    assert not damage.attempt(outcome, lambda: damage.restart(folder))
    assert (outcome.refusals, outcome.broken) == (1, [])


def test_parts_of_files_that_a_killed_driver_left_do_no_harm_and_go(tmp_path):
    folder = damage.learned(tmp_path, "d-choices", random.Random(1))
    plans = folder.root / "plans"
    old, new = plans / ".2.npz.old", plans / ".2.npz.new"
    for part in (old, new):
        part.write_bytes(b"half a pl")
    os.utime(old, (0, 0))
    damage.restart(folder)
    assert new.exists(), "somebody may be writing it"
    assert not old.exists()


@pytest.mark.timeout(600)
def test_a_round_on_a_cluster_is_exact_although_processes_are_killed(tmp_path):
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    more = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    what = ["--only", "cluster", "--minutes", "0.01", "--seed", "7", "--faults", "3"]
    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos", *what], cwd=ROOT, stdout=log, stderr=log,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **more},
        )  # fmt: skip
        try:
            code = process.wait(500)
        finally:
            kill(process)
    said = (tmp_path / "log.txt").read_text()
    assert code == 0, said[-3000:]
    assert ": ok" in said
    assert ": no faults:" not in said, "nothing was hit amid its work"
