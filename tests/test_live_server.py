"""The live page's server: who is answered, what goes out, and what a slow reader costs."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time

import pytest

from skewless.errors import SkewlessError
from skewless.live import HotKey, Page, server
from skewless.live.page import borrowed, given_back
from skewless.live.server import FILES, event
from tests.live_sights import sight


@pytest.fixture
def page():
    page = Page()
    yield page
    page.close()


def asked(page, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    return connection.getresponse()


class Reader:
    """Reads the events of a page, one at a time."""

    def __init__(self, page):
        self.answer = asked(page, "/events", Host=f"127.0.0.1:{page.port}")

    def next(self):
        while True:
            line = self.answer.readline()
            if not line:
                return None
            if line.startswith(b"data: "):
                assert self.answer.readline() == b"\n"
                return json.loads(line[6:])


def test_the_page_and_all_it_needs_come_from_here_and_nothing_from_elsewhere(page):
    host = f"localhost:{page.port}"
    for path in FILES:
        answer = asked(page, path, Host=host)
        text = answer.read().decode()
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        links = re.findall(r"""(?:https?:)?//[\w.]+""", text)
        assert {link for link in links if "w3.org" not in link} <= set()
        assert "innerHTML" not in text
    for named in re.findall(r'(?:src|href)="([^"]+)"', asked(page, Host=host).read().decode()):
        assert f"/{named}" in FILES


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::1]:1"])
def test_a_request_by_another_name_is_refused(page, host):
    for path in ("/", "/events"):
        answer = asked(page, path, Host=host)
        assert (answer.status, b"127.0.0.1" in answer.read()) == (403, True)


def test_a_request_without_a_host_or_with_two_or_from_another_site_is_refused(page):
    host = f"127.0.0.1:{page.port}"
    assert asked(page).status == 403
    assert asked(page, Host=host, host="evil.example").status == 403
    assert asked(page, "/events", Host=host, Sec_Fetch_Site="cross-site").status == 403
    opened = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert asked(page, Host=host, **opened).status == 200, "a link that somebody follows"


def test_only_gets_of_known_paths_are_answered(page):
    host = f"127.0.0.1:{page.port}"
    assert asked(page, "/../server.py", Host=host).status == 404
    assert asked(page, "/", "POST", Host=host).status == 501


def test_it_listens_on_the_loopback_only(page):
    assert page._server.socket.getsockname()[0] == "127.0.0.1"


def test_a_reader_gets_everything_at_once_then_each_change(page):
    page.show(sight("a", 0))
    reader = Reader(page)
    assert reader.answer.headers["Content-Type"].startswith("text/event-stream")
    assert reader.next()["all"]
    page.show(sight("a", 1, loads=[7, 3]))
    news = reader.next()
    assert not news["all"]
    assert news["queries"][0]["newest"]["loads"] == [7, 3]
    again = Reader(page).next()
    assert again["all"]
    assert len(again["queries"][0]["points"]) == 2


def test_a_reader_of_an_empty_page_gets_the_first_batch_that_comes(page):
    reader = Reader(page)
    assert reader.next()["queries"] == []
    page.show(sight("a", 0))
    assert reader.next()["order"] == ["a"]


def test_readers_get_the_last_word_before_the_page_closes():
    page = Page()
    reader = Reader(page)
    reader.next()
    page.show(sight("a", 0))
    page.tell("a", "ended")
    page.close()
    messages = list(iter(reader.next, None))
    assert messages[-1]["queries"] == [] or messages[-1]["queries"][0]["state"] == "ended"
    assert [m["queries"][0]["state"] for m in messages if m["queries"]][-1] == "ended"
    page.close()  # twice does no harm


def test_an_event_is_one_line_whatever_a_key_is():
    hot = [[name, 1, 1] for name in ("a\nb\r\ndata: x", "\u2028", "\ud800", "<script>", None)]
    sent = event({"hot": hot})
    assert sent.startswith(b"data: ")
    assert sent.endswith(b"\n\n")
    assert sent.count(b"\n") == 2
    assert json.loads(sent[6:])["hot"] == hot


def test_a_reader_that_does_not_read_is_dropped_and_others_are_served(page, monkeypatch):
    monkeypatch.setattr(server._Handler, "timeout", 0.5)
    monkeypatch.setattr(server, "PACE_S", 0.0)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", page.port))
    deaf.sendall(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
    reader = Reader(page)
    reader.next()
    assert len(page._server._readers) == 2
    stop_s, batch = time.monotonic() + 20, 0
    hot = [HotKey("x" * 120, 1, 1)] * 8
    while len(page._server._readers) > 1 and time.monotonic() < stop_s:
        page.show(sight("a", batch, loads=[1] * 500, hot=hot))  # waits for nobody
        reader.next()
        batch += 1
    assert len(page._server._readers) == 1
    deaf.close()


def test_too_many_connections_are_turned_away_and_let_in_later(page, monkeypatch):
    page._server._free = threading.BoundedSemaphore(2)
    readers = [Reader(page) for _ in range(2)]
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        asked(page, Host="localhost")
    readers[0].answer.close()
    monkeypatch.setattr(server, "PACE_S", 0.0)
    stop_s = time.monotonic() + 10
    while time.monotonic() < stop_s:
        page.show(sight("a", 0))  # finds out that the reader is gone
        try:
            assert asked(page, Host="localhost").status == 200
            return
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.05)
    raise AssertionError("no connection became free")


def test_a_port_that_is_taken_is_one_sentence(page):
    with pytest.raises(SkewlessError, match=r"on 127\.0\.0\.1:\d+ .*give another port, or 0"):
        Page(page.port)


@pytest.mark.parametrize("port", [-1, 65536, "80", True, 1.5])
def test_what_is_no_port_is_refused(port):
    with pytest.raises(SkewlessError, match="from 0, which takes a free one, to"):
        Page(port)


def test_one_port_is_one_page_in_a_process_until_the_last_gives_it_back():
    first = borrowed(0)
    second = borrowed(first.port)
    assert second is first
    given_back(first)
    assert asked(first, Host="localhost").status == 200
    given_back(second)
    with pytest.raises(ConnectionError):
        asked(first, Host="localhost")
    other = borrowed(first.port)
    assert other is not first
    given_back(other)
