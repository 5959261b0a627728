"""Workers that join and leave in the queueing simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import skewless
from skewless.cli import app
from skewless.errors import SkewlessError
from skewless.simulate.queue.run import Cluster, queue
from skewless.streams import stream_of

STREAM = "zipf:z=1.1,keys=300,messages=6000"
GROWN, SHRUNK = (2000, [1.0] * 7), (4000, [1.0] * 3)
SCHEMES = ["key", "shuffle", "partial", "potc", "bounded-hash", "graded", "proactive",
           "consistent:slot=50", "distribution-aware:learn=500", "dynamic:rate=200"]  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_workers_join_and_leave_and_no_message_is_lost(scheme):
    seen = queue(STREAM, scheme, Cluster(5, 0.5, 2, changes=[GROWN, SHRUNK], delay=3.0))
    assert sum(seen.balance.loads) == seen.finished + seen.queued == 6000
    assert [(c["message"], c["workers"]) for c in seen.changes] == [(2000, 7), (4000, 3)]
    assert all(0 < c["keys_moved"] <= 1 for c in seen.changes)
    served = seen.series.served
    before, after = (seen.series.messages <= 2000), (seen.series.messages >= 4000)
    assert not served[before][:, 5:].any()
    assert served[-1][5:].all()
    assert (served[after][:, 3:] == served[-1][3:]).all(), "one that left got a message"


def test_a_worker_that_joins_has_its_own_capacity_from_its_first_message_on():
    # With other units of time nothing else may change; messages of a Poisson process come early.
    def seen(c):
        changes = [(2000, [c, c, c])]
        cluster = Cluster(2, 0.8, capacities=[c, c], changes=changes, arrivals="poisson")
        return queue("zipf:z=0,keys=1000,messages=4000", "shuffle", cluster, seed=3)

    slow, fast = seen(1.0), seen(100.0)
    assert fast.mean_latency * 100 == pytest.approx(slow.mean_latency)
    assert fast.max_queue == slow.max_queue


def test_the_keys_that_moved_are_those_whose_worker_is_another():
    seen = queue(STREAM, "key", Cluster(5, 0.5, changes=[GROWN]))
    keys = np.concatenate([chunk.keys for chunk in stream_of(STREAM).chunks(0)])
    both = np.intersect1d(keys[:2000], keys[2000:])
    before, after = (skewless.route(both, "key", workers) for workers in (5, 7))
    assert seen.changes[0]["keys_moved"] == pytest.approx((before != after).mean())


def test_with_consistent_only_what_goes_to_new_workers_moves():
    scheme = "consistent:inner=key,slot=1e9"
    seen = queue(STREAM, scheme, Cluster(5, 0.1, changes=[GROWN]))
    other = queue(STREAM, "key", Cluster(5, 0.1, changes=[GROWN]))
    assert seen.changes[0]["keys_moved"] < 0.45 < 0.6 < other.changes[0]["keys_moved"]
    owners = seen.tallies[0].owners
    first = np.arange(owners.size) % 5
    assert set(owners[owners != first].tolist()) == {5, 6}


def test_a_queue_that_fills_after_a_loss_of_workers_takes_time_to_recover():
    changes = [(20_000, [1.0] * 2), (21_000, [1.0] * 8)]
    stream = "zipf:z=0,keys=1000,messages=60000"
    seen = queue(stream, "shuffle", Cluster(8, 0.5, changes=changes))
    lost, back = seen.changes
    assert lost["recovery"] is None
    back_at = 21_000 * seen.elapsed / 60_000
    series = seen.series
    late = series.times[(series.messages > 21_000) & (series.queues.max(axis=1) > 4)]
    assert back["recovery"] == pytest.approx(late.max() - back_at, rel=0.2)


def test_where_nothing_waits_there_is_nothing_to_recover_from():
    cluster = Cluster(4, 0.1, changes=[(2000, [1.0] * 5)])
    stream = "zipf:z=0,keys=100,messages=4000"
    assert queue(stream, "shuffle", cluster).changes[0]["recovery"] == 0


def test_a_scheme_that_learned_the_whole_stream_is_refused():
    with pytest.raises(SkewlessError, match="off-greedy learns the whole stream"):
        queue(STREAM, "off-greedy", Cluster(5, 0.5, changes=[GROWN]))


def test_the_command_line_shows_what_each_change_did():
    words = ["queue", "--stream", STREAM, "--scheme", "partial", "--workers", "2", "--load", "0.5",
             "--change", "3000:1,1,1"]  # fmt: skip
    shown = CliRunner().invoke(app, words)
    assert "Workers joined or left" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert found["changes"][0]["workers"] == 3
    assert len(found["loads"]) == len(found["utilisation"]) == 3


def test_the_command_line_says_that_a_recovery_was_not_over():
    words = ["queue", "--stream", STREAM, "--scheme", "key", "--workers", "3", "--load", "0.9",
             "--change", "1000:1"]  # fmt: skip
    shown = CliRunner().invoke(app, words)
    assert "not over" in shown.stdout
    assert "None" not in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert found["changes"][0]["recovery"] is None
