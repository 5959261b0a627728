"""Every Python snippet of README.md and docs/ runs, in order, page by page.

A snippet that cannot run has a line `<!-- not run: why -->` before it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from tests.spark.snippets import ELSEWHERE, FOLDERS, PREPARED, SMALLER

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?ms)(<!-- not run: [^>]+ -->\n)?^```python\n(.*?)^```$")
MOST_NOT_RUN = 3
PARTITIONS = "spark.sql.shuffle.partitions"


def snippets(page):
    """(line, code) of the snippets of a page that are to run."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        if not found[1]:
            yield text.count("\n", 0, found.start(2)), found[2]


DOCS = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE]
PAGES = [page for page in [ROOT / "README.md", *DOCS] if any(snippets(page))]


@pytest.fixture
def session(spark, tmp_path, monkeypatch):
    """The session, with Python in an empty folder, and its number of partitions kept."""
    monkeypatch.chdir(tmp_path)
    before = spark.conf.get(PARTITIONS)
    yield spark
    for query in spark.streams.active:
        query.stop()
    spark.conf.set(PARTITIONS, before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_run(page, session, tmp_path):
    known = {"__name__": "__main__", "spark": session}
    if page.name in PREPARED:
        known.update(PREPARED[page.name](session, tmp_path))
    for line, code in snippets(page):
        for large, small in SMALLER.items():
            code = code.replace(large, small)
        code = FOLDERS.sub(rf'"{tmp_path}/\1', code)
        given = dict(known)
        # Line numbers of a traceback are those of the page.
        exec(compile("\n" * line + code, str(page), "exec"), known)
        if page.name in PREPARED:  # other pages run what they define themselves
            run_what_is_lazy(session, [v for k, v in known.items() if given.get(k) is not v])


def run_what_is_lazy(session, made):
    """Compute the tables that a snippet defined, and what its streams have to read."""
    for thing in made:
        if isinstance(thing, DataFrame) and not thing.isStreaming:
            thing.write.format("noop").mode("overwrite").save()
    for query in session.streams.active:
        query.processAllAvailable()
        query.stop()


def test_few_snippets_are_left_out():
    texts = [p.read_text(encoding="utf-8") for p in (ROOT / "docs").glob("*.md")]
    assert sum(text.count("<!-- not run:") for text in texts) <= MOST_NOT_RUN
