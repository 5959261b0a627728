"""Parameters of schemes and streams: the same, whether from an object or from a spec string."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, get_type_hints

import numpy as np
import pytest

from skewless.errors import SkewlessError
from skewless.schemes import SCHEMES, scheme_of
from skewless.schemes.consistent.scheme import ConsistentGrouping
from skewless.schemes.distribution_aware import DistributionAware
from skewless.schemes.partial import PartialKeyGrouping
from skewless.schemes.w_choices import WChoices
from skewless.simulate.queue.costs import Exponential
from skewless.spec import parameters
from skewless.streams import STREAMS, stream_of
from skewless.streams.csv import CommaSeparated
from skewless.streams.tsv import TabSeparated
from skewless.streams.zipf import Zipf

if TYPE_CHECKING:
    from nowhere import Unknown


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: PartialKeyGrouping(1.5), "partial:choices takes a whole number, not 1.5."),
        (lambda: PartialKeyGrouping("a"), "partial:choices takes a whole number, not 'a'."),
        (lambda: PartialKeyGrouping(True), "partial:choices takes a whole number, not True."),
        (lambda: PartialKeyGrouping(None), "partial:choices takes a whole number, not None."),
        (lambda: PartialKeyGrouping(np.array([1, 2])), "takes a whole number, not array"),
        (lambda: PartialKeyGrouping(2**63), "takes a whole number up to 9223372036854775807"),
        (lambda: WChoices(theta="a"), "w-choices:theta takes a number, not 'a'."),
        (lambda: WChoices(half_life=True), "w-choices:half_life takes a number, not True."),
        (lambda: ConsistentGrouping(settle=1), "consistent:settle takes true or false, not 1."),
        (lambda: DistributionAware(variant="fast"), "no value for distribution-aware:variant"),
        (lambda: Zipf(1.0, 10, 1.5), "zipf:messages takes a whole number, not 1.5."),
        (lambda: Zipf(1.0, 10, np.inf), "zipf:messages takes a whole number, not inf."),
        (lambda: Zipf(1.0, 10, 1e30), "takes a whole number up to 9223372036854775807, not 1e+30."),
        (lambda: Zipf(1j, 10, 10), "zipf:z takes a number, not 1j."),
        (lambda: Zipf(None, 10, 10), "zipf:z takes a number, not None."),
        (lambda: TabSeparated(None, 1), "tsv:path takes a text, not None."),
        (lambda: CommaSeparated("a", True), "csv:column takes a text, not True."),
        (lambda: CommaSeparated("a", 1.0), "csv:column takes a text, not 1.0."),
        (lambda: Exponential("a"), "exponential:mean takes a number, not 'a'."),
    ],
)
def test_an_object_with_a_parameter_of_another_type_is_refused_as_in_a_spec_string(make, sentence):
    with pytest.raises(SkewlessError) as refused:
        make()
    assert sentence in str(refused.value)


def test_a_number_that_is_too_large_is_shown_as_it_was_written():
    with pytest.raises(SkewlessError, match="up to 9223372036854775807, not '1e308'"):
        stream_of("zipf:z=1,keys=1e308,messages=9")


@pytest.mark.parametrize("registry", [SCHEMES, STREAMS], ids=["schemes", "streams"])
def test_no_scheme_and_no_stream_takes_a_parameter_that_is_no_value_at_all(registry):
    for name, cls in registry.items():
        hints = get_type_hints(cls)
        needed = {p["name"]: hints[p["name"]](1) for p in parameters(cls) if p["required"]}
        for parameter in parameters(cls):
            with pytest.raises(SkewlessError, match=rf"{name}:{parameter['name']}\b"):
                cls(**(needed | {parameter["name"]: object()}))


def test_numbers_of_any_kind_become_those_of_a_spec_string():
    scheme = PartialKeyGrouping(np.int32(3))
    assert scheme == scheme_of("partial:choices=3")
    assert type(scheme.choices) is int
    assert Zipf(Decimal("1.5"), 1e4, np.float32(1e6)) == stream_of(
        "zipf:z=1.5,keys=1e4,messages=1e6"
    )
    assert type(WChoices(theta=1).theta) is float
    assert type(WChoices(theta=Fraction(1, 8)).theta) is float
    assert type(ConsistentGrouping(settle=np.True_).settle) is bool


def test_a_column_by_its_number_becomes_text():
    assert CommaSeparated("a.csv", np.int64(2)) == stream_of("csv:path=a.csv,column=2")


def test_a_path_becomes_text(tmp_path):
    assert TabSeparated(tmp_path / "a.tsv", 1).path == str(tmp_path / "a.tsv")


def test_copies_are_checked_too():
    assert pickle.loads(pickle.dumps(WChoices(0.5))) == WChoices(0.5)
    assert replace(WChoices(0.5), half_life=2).half_life == 2.0
    with pytest.raises(SkewlessError, match="takes a number"):
        replace(WChoices(0.5), half_life="2")


def test_a_scheme_of_a_users_own_is_checked_before_it_looks_at_its_parameters():
    @dataclass(frozen=True)
    class AtLeastThree(PartialKeyGrouping):
        least: int = 3

        def __post_init__(self) -> None:
            if self.choices < self.least:
                raise SkewlessError("fewer than three")

    assert AtLeastThree(np.int64(4)).choices == 4
    with pytest.raises(SkewlessError, match="fewer than three"):
        AtLeastThree(2)
    with pytest.raises(SkewlessError, match="partial:least takes a whole number, not '3'"):
        AtLeastThree(4, "3")


@pytest.mark.parametrize("slots", [False, True])
def test_the_default_of_a_users_own_scheme_may_be_of_another_type(slots):
    @dataclass(frozen=True, slots=slots)
    class Limited(PartialKeyGrouping):
        limit: int = None  # as many write it

    assert Limited().limit is None
    assert Limited(limit=np.int64(4)).limit == 4
    with pytest.raises(SkewlessError, match="partial:limit takes a whole number, not 'a'"):
        Limited(limit="a")


def test_types_that_no_spec_string_has_are_left_to_the_users_own_scheme():
    @dataclass(frozen=True)
    class Weighted(PartialKeyGrouping):
        weights: tuple[float, ...] = ()
        either: int | str = 1

    @dataclass(frozen=True)
    class Odd(PartialKeyGrouping):
        odd: Unknown | None = None

    assert Weighted(2, (0.5,), "a").either == "a"
    assert Odd(2, "anything").odd == "anything"
