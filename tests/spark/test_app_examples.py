"""The examples run, on made-up rows and on a small cut of real files where they are."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = {
    "heavy_hitters": "congress_words.tsv.gz",
    "top_k": "congress_hashtags.tsv.gz",
    "naive_bayes": "kdd99_10pct.tsv.gz",
    "decision_tree": "kdd99_10pct.tsv.gz",
}


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    return lambda name: runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def file_of(name, real):
    if not real:
        return None
    path = DATA / FILES[name]
    if not path.is_file():
        pytest.skip("the real streams are not part of the repository")
    return str(path)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize(("name", "least"), [("naive_bayes", 0.9), ("decision_tree", 0.9)])
def test_examples_that_classify_are_mostly_right(spark, example, tmp_path, name, least, real):
    more = {"picture": str(tmp_path / "tree.png")} if name == "decision_tree" else {}
    assert example(name)(file_of(name, real), 3000, **more) > least
    assert list(tmp_path.iterdir()) == [Path(p) for p in more.values()]


@pytest.mark.parametrize("real", [False, True])
def test_the_example_of_heavy_hitters_finds_frequent_words(spark, example, real, capsys):
    found = example("heavy_hitters")(file_of("heavy_hitters", real), 2000)
    assert found[0]["count"] >= 0.03 * found[0]["total"]
    assert ("the" in {row["word"] for row in found}) == real
    assert " times" in capsys.readouterr().out


def test_the_example_of_top_k_sees_what_is_new(spark, example, capsys):
    ever, weekly, growing = example("top_k")(None, 4000)
    assert [row["rank"] for row in ever] == [1, 2, 3, 4, 5]
    assert ever[0]["tag"] == "t1"
    assert len(weekly) >= 9
    assert growing[0]["tag"] == "news"
    assert "growing" in capsys.readouterr().out
