"""Pages: self-contained, sound, and with everything of strangers escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from skewless.cli import app
from skewless.diagnose.data import diagnose_stream
from skewless.diagnose.event_log.log import diagnose_log
from tests.diagnose_logs import SQL, log, node, stage, task, text

HOSTILE = "<script>alert('x')</script>\"&\x1b[31m\u202e"
_VOID = {"meta", "path", "rect", "br"}


class Sound(HTMLParser):
    """Fails where tags do not match, or anything is fetched or run."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "object", "link", "img")
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("src", "href")
            assert "javascript:" not in (value or "")
        self.seen.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag


def sound(page):
    parser = Sound()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert "http" not in page.replace("http-equiv", "")
    return parser.seen


def page_of(tmp_path, *arguments):
    out = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["diagnose", *map(str, arguments), "--html", str(out)])
    assert result.exit_code == 0, result.output
    return out.read_text()


def test_a_hostile_key_is_shown_as_it_is_and_does_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({HOSTILE: [HOSTILE] * 50 + ["b"]}), path)
    page = page_of(tmp_path, path, "--key", HOSTILE)
    assert "svg" in sound(page)
    assert "&lt;script&gt;alert" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize("stages", [0, 1, 5000])
def test_a_log_s_page_is_sound_with_any_number_of_stages(tmp_path, stages):
    def tasks(number):
        return [task(1.0), task(1.0), task(1.0), task(2.5 + number % 7)]

    events = [e for n in range(stages) for e in stage(tasks(n), number=n)]
    path = tmp_path / "log"
    path.write_bytes(text(log(*events)))
    page = page_of(tmp_path, "--event-log", path)
    assert sound(page).count("tr") >= stages
    assert len(page) < 8_000_000
    if not stages:
        assert "nothing to judge" in page


def test_names_of_columns_and_applications_are_escaped_too(tmp_path):
    exchange = f"Exchange hashpartitioning({HOSTILE}#1, 8)"
    join = node("SortMergeJoin", children=[node("Exchange", exchange, records_read=5)], rows=3)
    start = {"Event": f"{SQL}ExecutionStart", "executionId": 1, "sparkPlanInfo": join}
    name = {"Event": "SparkListenerApplicationStart", "App Name": HOSTILE, "Timestamp": 0}
    skewed = [task(1.0), task(1.0), task(1.0), task(9.0, records=999)]
    events = [name, start, *stage(skewed, accumulators=[3, 5], execution=1)]
    path = tmp_path / "log"
    path.write_bytes(text(log(*events)))
    page = page_of(tmp_path, "--event-log", path)
    sound(page)
    assert "&lt;script&gt;" in page
    assert "join on" in page


def test_before_and_after_have_a_page(tmp_path):
    for name, slow in (("before", 9.0), ("after", 1.0)):
        made = stage([task(1.0), task(1.0), task(1.0), task(slow)])
        (tmp_path / name).write_bytes(text(log(*made)))
    arguments = ["--event-log", tmp_path / "before", "--against", tmp_path / "after"]
    assert sound(page_of(tmp_path, *arguments)).count("details") >= 2


def test_a_notebook_shows_results(tmp_path):
    found = diagnose_stream("zipf:z=1.2,keys=100,messages=2000", 300)
    sound(found._repr_html_())
    assert "prefers-color-scheme:dark" in found._repr_html_()
    assert "zipf" in repr(found)
    path = tmp_path / "log"
    path.write_bytes(text(log(*stage([task(1.0)] * 900))))
    made = diagnose_log(path)
    sound(made._repr_html_())
    assert len(made.stages[0].drawn) == 400


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "page.html")
    stream = "zipf:z=1.2,keys=100,messages=2000"
    result = CliRunner().invoke(app, ["diagnose", "--stream", stream, "--html", out])
    assert result.exit_code == 1
    assert "cannot be written to" in str(result.exception)
