"""The registry of schemes: one file per scheme, one line here."""

from __future__ import annotations

from skewless.errors import SkewlessError, brief
from skewless.schemes.api import Feedback, RouteTable, Scheme
from skewless.schemes.check import check_scheme
from skewless.spec import Registry, build

SCHEMES: Registry[Scheme] = Registry(
    "skewless.schemes",
    {
        "key": "key:KeyGrouping",
        "shuffle": "shuffle:ShuffleGrouping",
        "partial": "partial:PartialKeyGrouping",
        "potc": "potc:StaticPowerOfTwoChoices",
        "on-greedy": "on_greedy:OnlineGreedy",
        "off-greedy": "off_greedy:OfflineGreedy",
        "d-choices": "d_choices:DChoices",
        "w-choices": "w_choices:WChoices",
        "distribution-aware": "distribution_aware:DistributionAware",
        "o-apx": "o_apx:OptimalApproximation",
        "sia": "sia:SingleInstanceAllocation",
        "modulo": "modulo:Modulo",
        "universal": "universal:UniversalHashing",
        "dynamic": "dynamic:DynamicKeyGrouping",
        "graded": "graded:GradedChoices",
        "graded-planned": "graded_planned:PlannedGradedChoices",
        "porc": "porc:PowerOfRandomChoices",
        "bounded-hash": "bounded_hash:BoundedLoadConsistentHashing",
        "potc-message": "potc_message:PowerOfTwoChoicesPerMessage",
        "consistent": "consistent.scheme:ConsistentGrouping",
        "proactive": "proactive.scheme:ProactiveShuffleGrouping",
        "full-knowledge": "full_knowledge:FullKnowledge",
    },
)


def scheme_of(scheme: Scheme | str) -> Scheme:
    """A scheme from its object or its spec string, such as `partial:choices=5`."""
    if isinstance(scheme, Scheme):
        return scheme
    if not isinstance(scheme, str):
        raise SkewlessError(
            f"A scheme is one of skewless.schemes or a text such as 'partial', not {brief(scheme)}."
        )
    return build(SCHEMES, scheme, "scheme")


__all__ = ["SCHEMES", "Feedback", "RouteTable", "Scheme", "check_scheme", "scheme_of"]
