"""`skewless run --live`, with a port and without one."""

from __future__ import annotations

import pytest

from skewless.cli.command import Command
from skewless.live import Page
from tests.test_cli import run, sentence

RUN = ["run", "--stream", "zipf:z=1,keys=10,messages=100", "--scheme", "key", "--workers", "2"]


@pytest.fixture
def page():
    page = Page()
    yield page
    page.close()


@pytest.mark.parametrize(
    ("given", "live", "top"),
    [
        ([], None, 10),
        (["--live"], 0, 10),
        (["--live", "4041"], 4041, 10),
        (["--live=4041"], 4041, 10),
        (["--live", "--top", "3"], 0, 3),
        (["--top", "3", "--live"], 0, 3),
    ],
)
def test_the_live_page_takes_a_port_or_a_free_one(given, live, top, monkeypatch):
    seen = []
    monkeypatch.setattr(Command, "invoke", lambda self, ctx: seen.append(ctx.params))
    assert run(*RUN, *given).exit_code == 0
    assert (seen[0]["live"], seen[0]["top"]) == (live, top)


def test_a_live_page_at_a_port_in_use_is_one_sentence_before_spark_starts(
    page, capsys, monkeypatch
):
    def started(*_):
        pytest.fail("Spark started")

    monkeypatch.setattr("skewless.spark.lab.session.local_session", started)
    said = sentence(capsys, monkeypatch, *RUN, "--live", str(page.port))
    assert f"127.0.0.1:{page.port}" in said
    assert "give another port" in said


def test_the_live_page_refuses_what_is_no_port(capsys, monkeypatch):
    assert "65535" in sentence(capsys, monkeypatch, *RUN, "--live", "70000")


def test_help_names_the_live_page():
    assert "--live" in run("run", "--help").output
