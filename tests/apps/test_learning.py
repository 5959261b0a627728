"""What streams taught, kept in a folder: bounded, and read as a whole."""

from __future__ import annotations

import pyarrow as pa

from skewless.apps.learning import TESTS_KEPT, Learned, LearningFolder, notes_of, share_right


def test_the_notes_of_a_stream_that_never_ends_do_not_grow(tmp_path):
    keeper = LearningFolder(str(tmp_path), {})
    # A folder of an earlier version has no sums.
    before = Learned(0, pa.table({"n": [1]}), {"history": [{"batch": 0, "tested": 10, "right": 1}]})
    assert share_right(before) == 0.1
    for batch in range(1, TESTS_KEPT + 50):
        notes = notes_of(before, batch, {"tested": 10, "right": 6})
        before = Learned(batch, before.table, notes)
    keeper.keep(before)
    found = keeper.newest()
    assert len(found.notes["history"]) == TESTS_KEPT
    assert found.notes["history"][-1]["batch"] == TESTS_KEPT + 49
    tests = TESTS_KEPT + 50
    assert share_right(found) == (6 * (tests - 1) + 1) / (10 * tests)
    assert share_right(None) is None
