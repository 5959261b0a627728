"""Real logs of older Sparks, cut down by tests/event_logs/scrub.py; jobs.py says what ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from skewless.diagnose.event_log.log import diagnose_log

HERE = Path(__file__).parent / "event_logs"
LOGS = sorted(HERE.glob("*.jsonl.gz"))
# By construction a stage of these takes 5.472 s and would take 1.8 s with even work (6 ms a row);
# what tasks take to start comes on top, on both sides.
SKEWED = {"join": "customer_id", "python": "sensor", "window": "user_id"}
LOST_S = 3.672


def test_there_are_logs_of_three_older_versions():
    assert {diagnose_log(log).spark[:3] for log in LOGS} == {"3.3", "3.5", "4.0"}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.split(".")[0])
def test_the_right_stage_operator_and_column_are_named_in_logs_of(log):
    found = diagnose_log(log)
    assert not found.cut
    worst = found.stages[:3]
    assert {s.operator: s.columns for s in worst} == {k: [v] for k, v in SKEWED.items()}
    for stage in worst:
        assert stage.cause == "skew of records"
        assert stage.lost_s == pytest.approx(LOST_S, rel=0.1)
    by_column = {s.columns[0]: s for s in found.stages if len(s.columns) == 1}
    assert by_column["part"].cause == "costly key"
    assert by_column["word"].operator == "aggregate"
    assert by_column["word"].cause == "none"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.split(".")[0])
def test_failed_jobs_and_micro_batches_are_seen_in_logs_of(log):
    found = diagnose_log(log)
    assert found.failed_jobs == 1
    assert any(s.batch == 0 and s.columns == ["device"] for s in found.stages)
