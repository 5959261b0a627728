"""The documentation: every page is in the navigation, every picture exists, every measure is told.

Broken links between pages fail in `make docs`.
"""

import inspect
import re
from pathlib import Path

import pytest
from scripts import reference

from skewless import folds, measures
from skewless.schemes import SCHEMES
from skewless.spark import Grouping

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
GENERATED = "reference.md"
FOLDS = ("Fold", "PerKeyFold", "count")


def test_the_navigation_has_every_page_once():
    listed = re.findall(r"(?m): (\S+\.md)$", (ROOT / "mkdocs.yml").read_text())
    pages = {page.name for page in PAGES} | {GENERATED}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_linked_file_exists(page):
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    missing = [t for t in targets if t != GENERATED and not (page.parent / t).exists()]
    assert missing == []


def test_every_measure_has_its_formula():
    told = (ROOT / "docs" / "measures.md").read_text()
    defined = [n for n, f in vars(measures).items() if inspect.isfunction(f)]
    assert [name for name in defined if f"`{name}`" not in told] == []


def test_every_scheme_is_in_the_list_of_schemes():
    told = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in SCHEMES if not re.search(rf"`{name}[`\[]", told)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_code_in_a_table_has_a_bar_which_the_site_shows_with_its_backslash(page):
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    assert [row for row in rows if re.search(r"`[^`]*\\\|[^`]*`", row)] == []


def test_the_reference_tells_a_method_where_it_is_defined_first():
    told = {name: [m for m, _, _ in reference.methods(getattr(folds, name))] for name in FOLDS}
    assert "merge_groups" in told["Fold"]
    assert told["PerKeyFold"] == ["zero", "reduce", "merge", "finish"]
    assert told["count"] == []


def test_the_reference_tells_no_second_name_twice_and_nothing_internal():
    told = {method: doc for method, _, doc in reference.methods(Grouping)}
    assert told["agg"] == "The same as `fold`."
    assert "partials" not in told
