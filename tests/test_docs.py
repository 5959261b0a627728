"""The documentation: every page is in the navigation, every picture exists, every measure is told.

Broken links between pages fail in `make docs`.
"""

import inspect
import re
from pathlib import Path

import pytest

from skewless import measures
from skewless.schemes import SCHEMES

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
GENERATED = "reference.md"


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
