"""`check_scheme` finds what is wrong with a scheme, and says which law it breaks."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from skewless.compiled import inlined
from skewless.errors import SkewlessError
from skewless.schemes import check_scheme, scheme_of
from skewless.schemes.distribution_aware import DistributionAware
from skewless.schemes.key import KeyGrouping
from skewless.schemes.partial import PartialKeyGrouping, PartialReport, PartialTally
from skewless.schemes.shuffle import ShuffleGrouping


@inlined
def beyond_the_last(plan, tally, key, weight, now):
    return plan.workers[0]


@inlined
def deaf(plan, tally, worker, kind, signal, now):
    return


class BeyondTheLast(ShuffleGrouping):
    choose: ClassVar[Any] = staticmethod(beyond_the_last)


class Deaf(PartialKeyGrouping):
    hear: ClassVar[Any] = staticmethod(deaf)


class Forgetful(ShuffleGrouping):
    def reserve(self, tally, messages):
        return type(tally)(np.zeros(1, np.int64))


class WritesIntoThePlan(PartialKeyGrouping):
    def tally(self, plan, source):
        return PartialTally(plan.start)


class PromisesOneWorker(PartialKeyGrouping):
    def most_workers_per_key(self, workers):
        return 1


class MergesInOrder(PartialKeyGrouping):
    def merge(self, a, b):
        return PartialReport(a.loads + 2 * b.loads, a.sources + b.sources)


class MergesInPairs(PartialKeyGrouping):
    def merge(self, a, b):
        return PartialReport((a.loads + b.loads) / 2, a.sources + b.sources)


class CountsTheIdle(PartialKeyGrouping):
    def report(self, plan, tally):
        return PartialReport(tally.loads - plan.start, np.array([1]))


class OtherTable(KeyGrouping):
    def table(self, plan):
        table = super().table(plan)
        return table._replace(buckets=table.buckets[::-1].copy())


@dataclass(frozen=True)
class LearnsNothing(DistributionAware):
    def replan(self, plan, report, feedback):
        return plan


BROKEN = {
    BeyondTheLast: "a number from 0 to 6",
    Forgetful: "in two pieces",
    WritesIntoThePlan: "must not be written to",
    PromisesOneWorker: "at most 1 are promised",
    MergesInOrder: r"merge\(a, b\) must equal",
    MergesInPairs: r"merge\(merge\(a, b\), c\) must equal",
    CountsTheIdle: "idle source must change nothing",
    OtherTable: "`table` of the first plan",
    LearnsNothing: "must plan otherwise",
    Deaf: "must leave something in the tally",
}


@pytest.mark.parametrize("scheme", BROKEN, ids=lambda scheme: scheme.__name__)
def test_a_broken_scheme_is_told_which_law_it_breaks(scheme):
    with pytest.raises(SkewlessError, match=BROKEN[scheme]):
        check_scheme(scheme())


@pytest.mark.parametrize(
    ("scheme", "options", "sentence"),
    [
        ("partial", {}, "check_scheme takes a scheme, .*, not 'partial'"),
        (ShuffleGrouping, {}, "check_scheme takes a scheme, .*, not <class"),
        (ShuffleGrouping(), {"workers": "3"}, "The number of workers is a whole number"),
        (ShuffleGrouping(), {"workers": 0}, "The number of workers must be at least 1"),
        (ShuffleGrouping(), {"messages": 0}, "at least 1 message, not 0"),
        (ShuffleGrouping(), {"seed": "a"}, "A seed is a whole number"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(scheme, options, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        check_scheme(scheme, **options)


def test_whole_numbers_of_numpy_are_taken():
    check_scheme(
        scheme_of("bounded-hash"), workers=np.uint8(9), messages=np.int64(100), seed=np.int32(4)
    )


def test_a_sound_scheme_passes():
    check_scheme(PartialKeyGrouping(choices=3), workers=5, messages=100, seed=4)
