"""A cut of the fuzzing of inputs; `make fuzz-inputs` runs all of it, and other seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewless import route
from skewless.apps.learning import Learned, LearningFolder
from skewless.errors import SkewlessError
from skewless.schemes import SCHEMES, scheme_of
from skewless.schemes.parts.learning import faded_messages
from skewless.spark.adapt.facts import StateFacts
from skewless.spark.join.plan import JoinPlan
from skewless.spark.report.codec import UnreadableError, flatten, pack, unpack
from skewless.spark.report.source import source_report, source_reports
from skewless.spec import parameters
from skewless.streams import stream_of
from tests.fuzz_inputs.__main__ import fuzz
from tests.fuzz_inputs.mutate import ODD_NUMBERS
from tests.fuzz_inputs.stored import join_plan, learned
from tests.fuzz_inputs.trial import Trials

ROOT = Path(__file__).parents[2]
PARAMETERS = sorted({p["name"] for kind in SCHEMES.values() for p in parameters(kind)})


def test_damaged_inputs_of_every_kind_give_a_result_or_one_sentence():
    done = fuzz(1200, seed=1)
    assert [text for trials in done for text in trials.defects] == []
    assert sum(trials.counts.total() for trials in done) == 1200
    assert all(trials.counts["refused"] and trials.counts["fine"] for trials in done)


def test_a_defect_would_be_seen():
    trials = Trials("none")
    trials.run(lambda: int("x"), "x")
    trials.run(lambda: exec("while True: pass"), "a loop", limit_s=0.05)
    assert trials.counts["defect"] == 2


def values_of(name):
    """A scheme and values of its own parameters, and of others."""
    own = [parameter["name"] for parameter in parameters(SCHEMES[name])]
    named = st.sampled_from(own or PARAMETERS) | st.sampled_from(PARAMETERS) | st.text(max_size=5)
    value = st.sampled_from(("1", "2", "0.5", "100", *ODD_NUMBERS)) | st.text(max_size=8)
    return st.tuples(st.just(name), st.dictionaries(named, value, max_size=3))


@given(st.sampled_from(sorted(SCHEMES)).flatmap(values_of))
def test_any_spec_string_is_a_scheme_or_one_sentence(given):
    name, values = given
    text = name + ":" + ",".join(f"{param}={value}" for param, value in values.items())
    trials = Trials("specs")
    trials.run(lambda: scheme_of(text), text)
    assert trials.defects == []


PLAN, REPORT = learned("d-choices")[1:]


@given(st.binary(max_size=200), st.integers(0, 10**6), st.integers(0, 10**6))
def test_bytes_put_into_packed_arrays_are_refused_or_leave_them_as_they_were(new, at, gone):
    data = pack({"format": 1}, PLAN, REPORT)
    start, stop = sorted((at % len(data), gone % len(data)))
    changed = data[:start] + new + data[stop:]
    try:
        facts, arrays = unpack(changed, PLAN, REPORT)
        assert facts == {"format": 1}
        assert all(map(np.array_equal, flatten(tuple(arrays)), flatten((PLAN, REPORT))))
    except UnreadableError:
        assert changed != data


@pytest.mark.timeout(600)
def test_files_that_unpack_to_ten_gigabytes_take_bounded_memory(tmp_path):
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz_inputs.bombs", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 8
    assert all(": refused: " in line for line in lines if line.startswith("one line"))
    assert all(": read: " in line for line in lines if not line.startswith("one line"))


def test_a_name_with_control_characters_stays_on_its_line():
    with pytest.raises(SkewlessError) as error:
        stream_of("zi\npf\x1b[31m")
    assert str(error.value).startswith("There is no stream 'zi\\npf\\x1b[31m'")


def test_a_table_that_would_fill_the_memory_is_refused():
    with pytest.raises(SkewlessError, match="must be at most 50,000,000"):
        scheme_of("bounded-hash:points=1e12").plan(7, 1)


def test_whole_numbers_are_those_that_kernels_count_with():
    with pytest.raises(SkewlessError, match=r"up to 9223372036854775807, not '9{20}'"):
        scheme_of("d-choices:refresh=99999999999999999999")


def test_a_half_life_without_end_fades_nothing():
    keys = (np.arange(400, dtype=np.uint64) ** 2) % 37
    routed = route(keys, "graded-planned:learn=12,relearn=12,half_life=1e300", 3)
    assert routed.size == keys.size
    report = learned("graded-planned")[2]
    for half_life in (1e15, 1e300, float("inf")):
        assert faded_messages(report, half_life) == pytest.approx(report.messages[0])
    ages = np.arange(int(report.messages[0] / report.sources[0]))
    faded = report.sources[0] * (0.5 ** (ages / 50)).sum()
    assert faded_messages(report, 50) == pytest.approx(faded)


def test_counters_that_would_fill_the_memory_are_refused():
    with pytest.raises(SkewlessError, match="capacity must be at most"):
        scheme_of("distribution-aware:learn=9,capacity=1e13")


def test_a_plan_of_a_join_whose_cells_share_a_slot_is_refused():
    plan = join_plan()
    assert plan.spreads
    assert JoinPlan.from_json(plan.to_json()).to_json() == plan.to_json()
    hot = next(slots for slots in plan.slots if slots.size > 1).tolist()
    twice = plan.to_json().replace(str(hot), str([hot[0]] * len(hot)))
    with pytest.raises(SkewlessError, match="not the plan of a join"):
        JoinPlan.from_json(twice)


def test_a_damaged_model_is_refused_and_not_replaced_by_an_older_one(tmp_path):
    keeper = LearningFolder(str(tmp_path), {"label": "x"})
    for batch in (1, 2):
        keeper.keep(Learned(batch, pa.table({"n": [1.0]}), {"history": []}))
    (tmp_path / "2.arrow").write_bytes((tmp_path / "2.arrow").read_bytes()[:-20])
    with pytest.raises(SkewlessError, match=r"2\.arrow' is damaged: restore it"):
        keeper.newest()


def test_damaged_facts_in_front_of_a_state_are_one_sentence():
    facts = StateFacts(("k string",), ("Count()",))
    damaged = facts.sealed(b"state").replace(b'"k', b"\xff\xff")
    with pytest.raises(SkewlessError, match="damaged: restore the checkpoint"):
        facts.opened(damaged)


def test_a_damaged_report_is_unreadable():
    text = source_report({"source": 1, "attempt": 2}, REPORT)
    assert len(source_reports([text], REPORT)) == 1
    for wrong in (text[:-3], "é" + text, text[:40] + text[41:]):
        with pytest.raises(UnreadableError):
            source_reports([wrong], REPORT)
