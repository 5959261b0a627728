"""The page's history: bounded, and complete for whoever asks since any version."""

from __future__ import annotations

import json
import tracemalloc

from skewless.live import HotKey, PlanFacts
from skewless.live.history import POINTS_KEPT, QUERIES_KEPT, History
from tests.live_sights import sight


def test_a_reader_that_knows_nothing_gets_everything_and_then_only_what_is_new():
    history = History()
    history.show(sight("a", 0))
    history.show(sight("b", 0))
    version, everything = history.since(0)
    assert everything["all"]
    assert everything["order"] == [query["id"] for query in everything["queries"]] == ["a", "b"]
    history.show(sight("b", 1, loads=[4, 6]))
    later, news = history.since(version)
    assert not news["all"]
    assert later > version
    assert [(query["id"], len(query["points"])) for query in news["queries"]] == [("b", 1)]
    assert news["queries"][0]["newest"]["loads"] == [4, 6]
    assert news["queries"][0]["messages"] == 20
    assert history.since(later)[1]["queries"] == []


def test_a_reader_that_slept_gets_the_points_it_missed_once_each():
    history, got, version = History(), [], 0
    for batch in range(100):
        history.show(sight("a", batch, ended_s=float(batch)))
        if batch % 7 == 0:
            version, message = history.since(version)
            got += [point[0] for query in message["queries"] for point in query["points"]]
    assert got == [float(batch) for batch in range(99)]


def test_the_past_of_a_day_stays_bounded():
    history = History()
    tracemalloc.start()
    for batch in range(2_000):
        history.show(sight("a", batch))
    before = tracemalloc.get_traced_memory()[0]
    for batch in range(2_000, 100_000):
        history.show(sight("a", batch))
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    _, message = history.since(0)
    assert len(message["queries"][0]["points"]) == POINTS_KEPT
    assert message["queries"][0]["batches"] == 100_000
    assert grown < 100_000


def test_of_too_many_queries_those_that_ended_are_forgotten_first():
    history = History()
    for number in range(QUERIES_KEPT):
        history.show(sight(f"q{number}", 0))
    history.tell("q5", "ended")
    history.show(sight("one more", 0))
    order = history.since(0)[1]["order"]
    assert len(order) == QUERIES_KEPT
    assert "q5" not in order
    history.show(sight("and another", 0))
    assert history.since(0)[1]["order"][0] == "q1"


def test_states_are_told_and_a_query_that_failed_unseen_appears():
    history = History()
    history.tell("unknown", "ended")
    history.tell("unseen", "failed", "ValueError: no")
    history.show(sight("a", 3))
    history.tell("a", "waiting")
    states = {query["id"]: query["state"] for query in history.since(0)[1]["queries"]}
    assert states == {"unseen": "failed", "a": "waiting"}
    history.tell("a", "failed", "x" * 10_000)
    assert len(history.since(0)[1]["queries"][1]["why"]) < 1_000
    history.show(sight("a", 4))
    query = history.since(0)[1]["queries"][1]
    assert (query["state"], query["why"]) == ("running", None)


def test_a_batch_job_has_ended_when_it_is_shown():
    history = History()
    history.show(sight("a", None))
    assert history.since(0)[1]["queries"][0]["state"] == "ended"


def test_all_that_goes_out_is_json_whatever_the_figures_are():
    history = History()
    hot = [HotKey("<b>", 5, 1), HotKey(None, 3, 2), HotKey("", 1, 1)]
    odd = sight("a", 0, hot=hot, plan=PlanFacts(3, 1, 2), seconds=float("nan"), replication=None)
    history.show(odd)
    text = json.dumps(history.since(0)[1], allow_nan=False)
    newest = json.loads(text)["queries"][0]["newest"]
    assert newest["hot"] == [["<b>", 5, 1], [None, 3, 2], ["", 1, 1]]
    assert newest["plan"] == [3, 1, 2]
