"""Routes of a tiny trace are as recorded: a change of any of them is noticed, and meant.

`python -m tests.golden.routes` records them again.
"""

import pytest

from tests.golden.routes import recorded, routes

RECORDED = recorded()


@pytest.fixture(scope="module")
def found():
    return dict(routes())


def test_every_scheme_has_golden_routes(found):
    assert found.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_routes_are_as_recorded(name, found):
    assert found[name] == RECORDED[name]
