"""Schemes that learn on a stream: plans go from batch to batch, and over restarts."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skewless import folds
from skewless.errors import SkewlessError
from skewless.hashing import identities
from skewless.schemes import SCHEMES, Feedback, scheme_of
from skewless.spark import Observer, group
from skewless.spark.adapt import files
from skewless.spark.adapt.control import Control
from skewless.spark.adapt.files import write_once
from skewless.spark.adapt.plans import KEPT, Learned, empty_report, stream_folder
from skewless.spark.report.codec import UnreadableError, flatten, pack, unpack
from skewless.spark.report.source import source_report, source_reports
from skewless.spark.report.task import WorkerReport
from tests.spark.streams import Files, eventually, run_to_end

CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"


def words(seed, count=4000):
    ranks = np.random.default_rng(seed).zipf(1.6, count) % 50
    return [f"w{r}" for r in ranks.tolist()]


def run_kernel(scheme, plan, keys, workers):
    """What one source does with these keys: its loads, and its report."""
    tally = scheme.reserve(scheme.tally(plan, 0), len(keys))
    hashed = identities(pa.array(keys))
    out = np.empty(len(keys), np.int32)
    scheme.route(plan, tally, hashed, np.ones(len(keys)), np.arange(float(len(keys))), out)
    return np.bincount(out, minlength=workers).tolist(), scheme.report(plan, tally)


@pytest.mark.parametrize("spec", ["partial", "dynamic:rate=50,keys=50"])
def test_a_stream_learns_from_batch_to_batch_and_goes_on_after_a_restart(spark, tmp_path, spec):
    files = Files(spark, tmp_path / "in", "w string")
    checkpoint, workers = tmp_path / "checkpoint", 8
    scheme, observer = scheme_of(spec), Observer()
    plan = scheme.plan(workers, 3)
    folder = stream_folder(str(checkpoint), scheme, workers, 3)
    for batch in range(2):
        keys = words(batch)
        files.put([(word,) for word in keys])
        grouping = group(
            files.stream(), "w", spec, workers, seed=3, checkpoint=f"file:{checkpoint}",
            observer=observer,
        )  # fmt: skip
        _, seen = run_to_end(grouping.fold(folds.count()), checkpoint, "complete")
        loads, report = run_kernel(scheme, plan, keys, workers)
        plan = scheme.replan(plan, report, Feedback.none(workers))
        eventually(lambda number=batch + 1: number in folder._numbers())
        learned = folder.used(batch + 1)
        for mine, expected in zip(flatten(learned.plan), flatten(plan), strict=True):
            np.testing.assert_array_equal(mine, expected)
        record = eventually(lambda number=batch: observer.records()[number:])[0]
        assert (record.batch, record.loads) == (batch, loads)
    assert sum(row["count"] for row in seen) == 2 * 4000
    assert learned.replans == 2
    assert learned.loads.sum() == 2 * 4000
    if scheme.name == "dynamic":
        assert learned.plan.widths.max() > 2, "no key was ever wide"


LEARNERS = [name for name, kind in SCHEMES.items() if kind.learns != "stream"]


@pytest.mark.parametrize("name", LEARNERS)
def test_what_was_learned_is_read_back_as_it_was_written(tmp_path, name):
    scheme = scheme_of(name)
    plan = scheme.plan(4, 1)
    _, report = run_kernel(scheme, plan, words(0, 500), 4)
    later = scheme.replan(plan, report, Feedback.none(4))
    folder = stream_folder(str(tmp_path), scheme, 4, 1)
    folder.claim()
    written = Learned(later, report, 500, 1, np.arange(4.0))
    folder.begin(written)
    read = folder.settle(7)
    assert read._replace(plan=(), pending=(), loads=None) == written._replace(
        plan=(), pending=(), loads=None
    )
    pairs = zip(flatten(read), flatten(written), strict=True)
    assert all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype for a, b in pairs
    )
    assert type(read.plan) is type(later)


def partial_folder(tmp_path):
    scheme = scheme_of("partial")
    plan = scheme.plan(2, 0)
    folder = stream_folder(str(tmp_path), scheme, 2, 0)
    folder.claim()
    control = Control(folder)
    control.begin(plan)
    return folder, control, scheme, plan


def packed(scheme, plan, source, attempt, loads):
    report = empty_report(scheme, plan)._replace(loads=np.array(loads), sources=np.array([1]))
    return source_report({"source": source, "attempt": attempt}, report)


def test_a_batch_keeps_the_plan_that_its_first_task_found(tmp_path):
    folder, _, _, plan = partial_folder(tmp_path)
    assert folder.settle(5).plan.start.tolist() == [0, 0]
    newer = plan._replace(start=np.array([0.0, 9.0]))
    folder.write(5, folder.used(5)._replace(plan=newer))
    assert folder.settle(5).plan.start.tolist() == [0, 0]
    assert folder.used(5).plan.start.tolist() == [0, 0]
    assert folder.settle(6).plan.start.tolist() == [0, 9]


def test_a_plan_once_written_stays(tmp_path):
    folder, control, _, plan = partial_folder(tmp_path)
    folder.write(0, folder.used(0)._replace(plan=plan._replace(start=np.array([5.0, 5.0]))))
    control.begin(plan._replace(start=np.array([7.0, 7.0])))
    assert folder.settle(0).plan.start.tolist() == [0, 0]


@pytest.fixture
def no_hard_links(monkeypatch):
    def refuse(source, target):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)


def test_a_checkpoint_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(SkewlessError, match=r"cannot be written \(No such file or directory\)"):
        write_once(tmp_path / "gone" / "plan", b"")


def test_without_hard_links_too_the_first_to_write_wins(tmp_path, no_hard_links, monkeypatch):
    path = tmp_path / "7"
    with ThreadPoolExecutor(8) as pool:
        written = pool.map(lambda n: (write_once(path, b"%d" % n), path.read_bytes()), range(50))
        found = [held for _, held in written]
    assert len(set(found)) == 1
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.setattr(files, "_RENAME_S", 0.01)
    left = tmp_path / ".8.mark"  # its maker died before it could rename
    left.touch()
    write_once(tmp_path / "8", b"8")
    assert (tmp_path / "8").read_bytes() == b"8"
    assert not left.exists()


def test_only_the_last_attempt_of_each_source_teaches(tmp_path):
    folder, control, scheme, plan = partial_folder(tmp_path)
    lost, kept, other = (
        packed(scheme, plan, 0, 11, [8.0, 0.0]),
        packed(scheme, plan, 0, 31, [3.0, 1.0]),
        packed(scheme, plan, 1, 12, [2.0, 0.0]),
    )
    assert len(source_reports([kept, lost, other], empty_report(scheme, plan))) == 2
    control.learn(0, [kept, lost, other], [WorkerReport(0, 50, 6, 1, 0, 0.5, 0.0, 1.0)])
    learned = folder.used(1)
    assert learned.plan.start.tolist() == [2.0, 0.0]
    assert learned.loads.tolist() == [6.0, 0.0]


def test_a_batch_that_ran_with_the_plan_before_loses_nothing(tmp_path):
    scheme = scheme_of("consistent:virtual=4")
    folder = stream_folder(str(tmp_path), scheme, 2, 0)
    folder.claim()
    control = Control(folder)
    control.begin(scheme.plan(2, 0))
    facts = {"source": 0, "attempt": 0}
    reports = [source_report(facts, run_kernel(scheme, scheme.plan(2, 0), words(0), 2)[1])]
    slow = [WorkerReport(w, 0, 2000, 1, 0, busy_s, 0.0, 1.0) for w, busy_s in ((0, 9.0), (1, 1.0))]
    folder.settle(0)
    folder.settle(1)  # the second batch began before the driver had heard of the first
    control.learn(0, reports, slow)
    control.learn(1, reports, slow)
    learned = folder.used(2)
    assert learned.loads.tolist() == [4000, 4000]
    assert learned.replans == 2
    owners = folder.used(2).plan.owners
    assert np.bincount(owners)[0] < 4, "nothing was learned"
    np.testing.assert_array_equal(owners, folder.before(1)[0].plan.owners, "moved twice")


def test_a_batch_without_messages_teaches_nothing(tmp_path):
    folder, control, _, _ = partial_folder(tmp_path)
    control.learn(0, [], [])
    assert folder._numbers() == [0]


def test_old_plans_are_forgotten(tmp_path):
    folder, _, _, _ = partial_folder(tmp_path)
    for batch in range(1, KEPT + 20):
        folder.settle(batch)
        folder.write(batch, folder.used(batch))
    assert sorted(folder._numbers()) == list(range(20, KEPT + 20))
    assert len(list((folder.root / "batches").iterdir())) <= KEPT


def test_old_batches_are_forgotten_where_nothing_is_learned(tmp_path):
    folder, _, _, _ = partial_folder(tmp_path)
    for batch in range(KEPT + 20):
        folder.settle(batch)
    assert {int(p.name) for p in (folder.root / "batches").iterdir()} == set(range(20, KEPT + 20))
    assert folder._numbers() == [0]


def test_a_learning_phase_may_take_several_batches(tmp_path):
    scheme = scheme_of("distribution-aware:learn=1000,theta=0.2")
    plan = scheme.plan(3, 0)
    folder = stream_folder(str(tmp_path), scheme, 3, 0)
    folder.claim()
    control = Control(folder)
    control.begin(plan)
    for batch in range(3):
        _, report = run_kernel(scheme, folder.used(batch).plan, words(batch, 400), 3)
        text = source_report({"source": 0, "attempt": batch}, report)
        control.learn(batch, [text], [WorkerReport(0, batch, 400, 9, 0, 0.1, 0.0, 1.0)])
    assert [folder.used(b).replans for b in range(4)] == [0, 0, 0, 1]
    assert [folder.used(b).messages for b in range(4)] == [0, 400, 800, 0]
    assert int(folder.used(2).pending.messages[0]) == 800
    assert folder.used(3).plan.head_keys.size > 0


def test_damaged_or_foreign_folders_are_refused(tmp_path):
    folder, _, _, _ = partial_folder(tmp_path)
    path = folder.root / "stream.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(SkewlessError, match="has format 99, and this version reads format 1"):
        folder.claim()
    path.write_text("{")
    with pytest.raises(SkewlessError, match="is damaged"):
        folder.claim()
    with pytest.raises(SkewlessError, match="holds no plan for batch 3"):
        stream_folder(str(tmp_path / "elsewhere"), scheme_of("partial"), 2, 0).settle(3)


@pytest.mark.parametrize("spec", ["d-choices", "dynamic", "graded"])
def test_a_stream_goes_on_from_a_checkpoint_of_format_1(spec):
    folder = stream_folder(str(CHECKPOINTS / "format-1" / spec), scheme_of(spec), 4, 1)
    folder.claim()
    learned = folder.used(7)
    assert (learned.messages, learned.replans, learned.loads.sum()) == (2000, 1, 2000)
    first = folder.first_plan()
    assert [a.dtype for a in flatten(learned.plan)] == [a.dtype for a in flatten(first)]
    assert int(learned.plan.workers[0]) == 4
    assert not all(
        np.array_equal(a, b) for a, b in zip(flatten(learned.plan), flatten(first), strict=True)
    )


def test_plans_of_other_fields_are_refused_not_misread():
    Before = namedtuple("Before", "loads counts")
    After = namedtuple("After", "counts loads")
    data = pack({}, Before(np.zeros(2), np.ones(2)))
    with pytest.raises(UnreadableError, match="of another version"):
        unpack(data, namedtuple("Grown", "loads counts more")(np.zeros(2), np.ones(2), np.ones(1)))
    _, (read,) = unpack(data, After(np.zeros(2), np.zeros(2)))
    assert (read.loads.tolist(), read.counts.tolist()) == ([0, 0], [1, 1])
    with pytest.raises(UnreadableError, match="its field 'counts'"):
        unpack(data, Before(np.zeros(2), np.ones(2, np.int64)))
    with pytest.raises(UnreadableError, match="its field 'counts'"):
        unpack(pack({}, namedtuple("Fewer", "loads")(np.zeros(2))), Before(np.zeros(2), np.ones(2)))


def test_a_field_that_was_added_with_a_default_is_read_as_that_default():
    Before = namedtuple("Before", "loads")
    After = namedtuple("After", "loads more", defaults=[np.full(1, 7.0)])
    nested = (After(np.zeros(2), np.ones(1)), np.zeros(3))
    _, (read,) = unpack(pack({}, (Before(np.ones(2)), np.ones(3))), nested)
    assert [array.tolist() for array in flatten(read)] == [[1, 1], [7], [1, 1, 1]]
    _, (read,) = unpack(pack({}, nested), nested)
    assert read[0].more.tolist() == [1]


@pytest.mark.parametrize("spec", ["graded", "partial", "d-choices", "w-choices"])
def test_a_plan_kept_before_its_tuple_got_another_field_is_read(tmp_path, spec):
    scheme = scheme_of(spec)
    folder = stream_folder(str(tmp_path), scheme, 2, 0)
    plan = folder.first_plan()._replace(start=np.array([0.0, 3.0]))
    fields = [field for field in plan._fields if field not in plan._field_defaults]
    before = namedtuple("Before", fields)(*(getattr(plan, field) for field in fields))
    folder.claim()
    folder.begin(Learned(before, empty_report(scheme, plan), 0, 1, np.zeros(2)))
    learned = folder.used(1)
    assert type(learned.plan) is type(plan)
    assert (learned.plan.start.tolist(), learned.plan.sources.tolist()) == ([0, 3], [0])
    report = empty_report(scheme, plan)._replace(loads=np.array([7.0, 1.0]), sources=np.array([2]))
    after = scheme.replan(learned.plan, report, Feedback.none(2))
    assert (after.start.tolist(), after.sources.tolist()) == ([0, 0], [2])


def test_a_damaged_plan_is_one_sentence(tmp_path):
    folder = partial_folder(tmp_path)[0]
    (path,) = (folder.root / "plans").iterdir()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(SkewlessError, match="is damaged: delete the folders 'plans'"):
        folder.used(0)


def test_without_its_plans_a_stream_goes_on_with_a_first_one(tmp_path):
    folder, control, _, plan = partial_folder(tmp_path)
    for name in ("plans", "batches"):
        shutil.rmtree(folder.root / name)
    control.begin(plan)
    assert folder.settle(7).replans == 0


def test_a_report_that_finds_its_folder_deleted_is_one_logged_sentence(spark, tmp_path, caplog):
    files = Files(spark, tmp_path / "in", "w string")
    files.put([("a",), ("b",)])
    folder = tmp_path / "folder"
    counts = group(files.stream(), "w", "partial", 2, checkpoint=str(folder)).fold(folds.count())
    writer = counts.writeStream.outputMode("update").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))

    def write(changed, batch):
        changed.collect()
        shutil.rmtree(folder)

    writer.foreachBatch(write).start().awaitTermination()
    logged = "skewless.spark.observe.progress"
    [record] = eventually(lambda: [r for r in caplog.records if r.name == logged])
    assert record.exc_info is None
    assert record.getMessage().startswith(
        f"What batch 0 reported could not be used: '{folder}/skewless' holds no plan for batch 0: "
    )
    assert "\n" not in record.getMessage()


def test_a_job_of_which_spark_does_not_name_the_batch_follows_the_first_plan(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    checkpoint = tmp_path / "checkpoint"
    for batch in range(3):
        files.put([(word,) for word in words(batch, 500)])
    grouping = group(files.stream(), "w", "partial", 4, seed=3, checkpoint=str(checkpoint))
    counts = {}

    def write(changed, batch):
        with ThreadPoolExecutor(1) as pool:  # a thread of the user's, of which Spark knows nothing
            counts.update((row["w"], row["count"]) for row in pool.submit(changed.collect).result())

    folder = stream_folder(str(checkpoint), scheme_of("partial"), 4, 3)
    writer = grouping.fold(folds.count()).writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert counts == Counter(word for batch in range(3) for word in words(batch, 500))
    assert list((folder.root / "batches").iterdir()) == [], "a batch was taken for another"
