"""An executor dies amid a join whose hot keys are in cells: no row is lost or doubled."""

from __future__ import annotations

import json

import pytest

from tests.faults.test_faults import finish, stages_run_again, start

pytestmark = pytest.mark.timeout(1900)


def test_a_join_is_exact_when_an_executor_is_killed_amid_it(tmp_path):
    finish(start("tests.faults.join_job", tmp_path), tmp_path, 1800)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["spread"]
    assert result["killed"], "no executor was killed"
    assert stages_run_again(tmp_path, streaming=False), "no stage was run again"
    assert (result["missing"], result["doubled"]) == (0, 0)
    assert result["rows"] > 24_000
