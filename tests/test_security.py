"""What SECURITY.md promises, beside the tests of the live page and of compiled code."""

from __future__ import annotations

import http.client
import io
import re
import stat
from pathlib import Path

import numpy as np
import pytest

from skewless.simulate.replication import PairCounter
from skewless.spark.observe.prometheus import Endpoint
from skewless.spark.report.codec import UnreadableError, unpack

SOURCES = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
# Compiled code, which is trusted like source code; checks of one's own schemes; the state of folds
# of one's own; code sent to one's own workers.
PICKLING = {
    "compiled/cache.py",
    "schemes/check.py",
    "folds/per_key.py",
    "spark/input/workers_python.py",
}


def sources_with(pattern):
    return {
        path.as_posix().split("src/skewless/")[1]
        for path in SOURCES
        if re.search(pattern, path.read_text(), re.MULTILINE)
    }


def test_nothing_unpickles_but_what_is_said():
    assert sources_with(r"^\s*(?:import|from) .*pickle|pickle\.loads?\(") == PICKLING
    assert sources_with(r"allow_pickle=True|marshal\.load|\beval\(|\bexec\(") == set()
    assert sources_with(r"np\.load\((?![^\n]*allow_pickle=False)") == set()
    assert sources_with(r"np\.load\(")


def test_a_plan_that_holds_objects_is_refused_and_runs_nothing(tmp_path):
    mark = tmp_path / "ran"

    class Harm:
        def __reduce__(self):
            return Path.touch, (mark,)

    out = io.BytesIO()
    np.savez(out, **{"facts": np.zeros(2, np.uint8), "0": np.array([Harm()], object)})
    with pytest.raises(UnreadableError):
        unpack(out.getvalue(), np.empty(0))
    assert not mark.exists()


def test_temporary_folders_are_made_private():
    assert sources_with(r"mktemp\(|[\"']/tmp") == set()
    counter = PairCounter(4, limit_bytes=1 << 20)
    try:
        keys = np.arange(100_000, dtype=np.uint64)
        counter.add(keys, (keys % 4).astype(np.int32))
        folder = Path(counter._folder.name)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    finally:
        counter.count()


@pytest.fixture
def endpoint():
    made = Endpoint(0)
    yield made
    made.close()


def asked(endpoint, host):
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.putrequest("GET", "/metrics", skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_prometheus_is_served_on_the_loopback_only(endpoint):
    assert endpoint._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST"])
def test_prometheus_answers_by_the_machines_own_name(endpoint, host):
    status, text = asked(endpoint, host)
    assert status == 200
    assert b"skewless_max_over_mean" in text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", None])
def test_prometheus_refuses_any_other_name(endpoint, host):
    status, text = asked(endpoint, host)
    assert status == 403
    assert b"skewless_" not in text
