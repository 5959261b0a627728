"""A restart with another scheme, number of workers or seed: exact, and hot keys stay known."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skewless import folds
from skewless.errors import SkewlessError
from skewless.schemes import Feedback, scheme_of
from skewless.spark import group, per_worker
from skewless.spark.adapt.control import Control
from skewless.spark.adapt.plans import Learned, empty_report, stream_folder
from skewless.spark.report.codec import flatten
from tests.spark.own_folds import Longest
from tests.spark.processors import CountPerKey
from tests.spark.streams import Files, run_again
from tests.spark.test_control import run_kernel, words

SETTINGS = [
    ("dynamic:rate=50,keys=50", 6, 1),
    ("dynamic:rate=50,keys=50", 3, 1),
    ("d-choices", 3, 1),
    ("shuffle", 2, 2),
]


@pytest.mark.parametrize("fold", [folds.count(), Longest()], ids=["Spark's state", "our own state"])
def test_counts_are_exact_over_restarts_with_other_settings(spark, tmp_path, fold):
    files, checkpoint = Files(spark, tmp_path / "in", "k string, s string"), tmp_path / "checkpoint"
    totals: dict[str, int] = {}
    counted: Counter[str] = Counter()
    for number, (scheme, workers, seed) in enumerate(SETTINGS):
        keys = words(number, 400)
        counted.update(keys)
        files.put([(key, "x" * (number + 1)) for key in keys])
        stream = files.stream()
        grouping = group(stream, "k", scheme, workers, seed=seed, checkpoint=str(checkpoint))
        made = grouping.fold(folds.count(), fold.alias("other"))
        totals.update((row["k"], row["count"]) for row in run_again(made, checkpoint))
        folder = stream_folder(str(checkpoint), scheme_of(scheme), workers, seed)
        assert folder.resume().setting == number
    assert totals == counted


def learned(folder, name, workers, seed, batches=3):
    """A folder whose stream has learned from a few batches."""
    scheme = scheme_of(name)
    mine = stream_folder(str(folder), scheme, workers, seed).resume()
    Control(mine).begin(mine.first_plan())
    for batch in range(batches):
        before = mine.used(batch)
        loads, report = run_kernel(scheme, before.plan, words(batch), workers)
        plan = scheme.replan(before.plan, report, Feedback.none(workers))
        sent = before.loads + loads
        mine.write(batch + 1, Learned(plan, empty_report(scheme, plan), 0, batch + 1, sent))
    return mine.used(batches)


def resumed(folder, name, workers, seed):
    mine = stream_folder(str(folder), scheme_of(name), workers, seed).resume()
    Control(mine).begin(mine.first_plan())
    return mine.settle(9)


def test_hot_keys_and_their_counts_stay_known(tmp_path):
    before = learned(tmp_path, "d-choices", 8, 1)
    after = resumed(tmp_path, "d-choices", 5, 2)
    assert before.plan.head_keys.size > 0
    np.testing.assert_array_equal(after.plan.head_keys, before.plan.head_keys)
    np.testing.assert_array_equal(after.plan.head_counts, before.plan.head_counts)
    assert (after.plan.start.size, int(after.plan.workers[0])) == (5, 5)
    assert after.loads.tolist() == [12_000 / 5] * 5
    np.testing.assert_array_equal(after.plan.seeds, scheme_of("d-choices").plan(5, 2).seeds)


def test_widths_are_bounded_by_the_workers_that_are_left(tmp_path):
    spec = "dynamic:rate=50,keys=50"
    before = learned(tmp_path, spec, 8, 1)
    after = resumed(tmp_path, spec, 2, 1)
    assert before.plan.widths.max() > 2
    np.testing.assert_array_equal(after.plan.keys, before.plan.keys)
    assert after.plan.widths.max() <= 2
    assert after.plan.start.sum() == pytest.approx(before.plan.start.sum())
    run_kernel(scheme_of(spec), after.plan, words(7), 2)


@pytest.mark.parametrize("name", ["partial", "graded", "consistent", "distribution-aware"])
def test_what_is_about_single_workers_is_not_carried_to_others(tmp_path, name):
    learned(tmp_path, name, 8, 1)
    after = resumed(tmp_path, name, 5, 1)
    first = scheme_of(name).plan(5, 1)
    for found, fresh in zip(flatten(after.plan), flatten(first), strict=True):
        np.testing.assert_array_equal(found, fresh)
    run_kernel(scheme_of(name), after.plan, words(7), 5)


def test_the_same_number_of_workers_goes_on_from_its_loads(tmp_path):
    before = learned(tmp_path, "partial", 4, 1)
    after = resumed(tmp_path, "partial", 4, 2)
    np.testing.assert_array_equal(after.plan.start, before.plan.start)
    np.testing.assert_array_equal(after.loads, before.loads)


def test_other_capacities_go_on_from_all_that_is_uneven(tmp_path):
    before = learned(tmp_path, "graded", 4, 1)
    scheme, capacities = scheme_of("graded"), np.array([4.0, 1.0, 1.0, 1.0])
    mine = stream_folder(str(tmp_path), scheme, 4, 1, capacities).resume()
    Control(mine).begin(mine.first_plan())
    after = mine.settle(9).plan
    assert (mine.setting, before.plan.sources.tolist()) == (1, [1])
    np.testing.assert_array_equal(after.start, before.plan.start)
    np.testing.assert_array_equal(after.sources, before.plan.sources)
    loads, _ = run_kernel(scheme, after, words(7), 4)
    assert max(loads / capacities) < 1.01 * 4000 / 7


def test_another_scheme_starts_with_a_first_plan(tmp_path):
    before = learned(tmp_path, "d-choices", 4, 1)
    after = resumed(tmp_path, "dynamic", 4, 1)
    assert after.plan.keys.size == 0
    assert after.loads.sum() == before.loads.sum()


def test_a_damaged_plan_of_the_setting_before_costs_what_was_learned_and_nothing_else(tmp_path):
    learned(tmp_path, "d-choices", 4, 1)
    for path in (tmp_path / "skewless/plans").iterdir():
        path.write_bytes(b"no plan")
    assert resumed(tmp_path, "d-choices", 5, 1).plan.head_keys.size == 0


@pytest.mark.parametrize("turn", range(20))  # each a chance for one to be overtaken by others
def test_drivers_that_change_the_setting_at_once_each_get_a_folder_of_their_own(tmp_path, turn):
    def resume(workers):
        return stream_folder(str(tmp_path), scheme_of("partial"), workers, 0).resume()

    resume(2)
    wanted = [3 + n % 4 for n in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(resume, wanted))
    kept: dict[int, set[int]] = {}
    for folder in found:
        kept.setdefault(folder.setting, set()).add(folder.workers)
    assert all(len(workers) == 1 for workers in kept.values())
    assert [folder.workers for folder in found] == wanted


def test_a_batch_that_was_settled_before_is_routed_by_the_new_setting(tmp_path):
    learned(tmp_path, "partial", 4, 1)
    old = stream_folder(str(tmp_path), scheme_of("partial"), 4, 1).resume()
    assert old.settle(3).plan.start.size == 4
    assert resumed(tmp_path, "partial", 6, 1).plan.start.size == 6
    new = stream_folder(str(tmp_path), scheme_of("partial"), 6, 1).resume()
    assert new.settle(3).plan.start.size == 6


def test_state_per_worker_stays_where_it_is_and_says_why(spark, tmp_path):
    files = Files(spark, tmp_path / "in", "w string")
    files.put([("a",)])
    checkpoint = str(tmp_path / "checkpoint")

    def counting(scheme="key", workers=2, seed=0):
        processor = CountPerKey()
        schema, how = CountPerKey.SCHEMA, {"seed": seed, "checkpoint": checkpoint}
        return per_worker(files.stream(), "w", scheme, workers, processor, schema, **how)

    counting()
    for other in ({"scheme": "partial"}, {"workers": 3}, {"seed": 1}):
        with pytest.raises(SkewlessError, match="state per worker cannot move to other workers"):
            counting(**other)
    with pytest.raises(SkewlessError, match=r"was written with .*state per worker, but this"):
        group(files.stream(), "w", "key", 2, checkpoint=checkpoint)


def test_settings_of_long_ago_are_forgotten_and_the_last_is_carried_over(tmp_path):
    for number in range(12):
        mine = stream_folder(str(tmp_path), scheme_of("d-choices"), 3 + number, 1).resume()
        Control(mine).begin(mine.first_plan())
        assert mine.setting == number
        assert (mine.earlier() is not None) == (number > 0)
    kept = sorted(int(path.name) for path in (tmp_path / "skewless" / "settings").iterdir())
    assert kept == [9, 10, 11]
