"""The registry of schemes: one file per scheme, one line here."""

from __future__ import annotations

from skewless.schemes.api import Feedback, RouteTable, Scheme
from skewless.schemes.bounded_hash import BoundedLoadConsistentHashing
from skewless.schemes.check import check_scheme
from skewless.schemes.consistent.scheme import ConsistentGrouping
from skewless.schemes.d_choices import DChoices
from skewless.schemes.distribution_aware import DistributionAware
from skewless.schemes.dynamic import DynamicKeyGrouping
from skewless.schemes.full_knowledge import FullKnowledge
from skewless.schemes.graded import GradedChoices
from skewless.schemes.graded_planned import PlannedGradedChoices
from skewless.schemes.key import KeyGrouping
from skewless.schemes.modulo import Modulo
from skewless.schemes.o_apx import OptimalApproximation
from skewless.schemes.off_greedy import OfflineGreedy
from skewless.schemes.on_greedy import OnlineGreedy
from skewless.schemes.partial import PartialKeyGrouping
from skewless.schemes.porc import PowerOfRandomChoices
from skewless.schemes.potc import StaticPowerOfTwoChoices
from skewless.schemes.potc_message import PowerOfTwoChoicesPerMessage
from skewless.schemes.proactive.scheme import ProactiveShuffleGrouping
from skewless.schemes.shuffle import ShuffleGrouping
from skewless.schemes.sia import SingleInstanceAllocation
from skewless.schemes.universal import UniversalHashing
from skewless.schemes.w_choices import WChoices
from skewless.spec import build

_ALL: tuple[type[Scheme], ...] = (
    KeyGrouping,
    ShuffleGrouping,
    PartialKeyGrouping,
    StaticPowerOfTwoChoices,
    OnlineGreedy,
    OfflineGreedy,
    DChoices,
    WChoices,
    DistributionAware,
    OptimalApproximation,
    SingleInstanceAllocation,
    Modulo,
    UniversalHashing,
    DynamicKeyGrouping,
    GradedChoices,
    PlannedGradedChoices,
    PowerOfRandomChoices,
    BoundedLoadConsistentHashing,
    PowerOfTwoChoicesPerMessage,
    ConsistentGrouping,
    ProactiveShuffleGrouping,
    FullKnowledge,
)
SCHEMES: dict[str, type[Scheme]] = {scheme.name: scheme for scheme in _ALL}


def scheme_of(scheme: Scheme | str) -> Scheme:
    """A scheme from its object or its spec string, such as `partial:choices=5`."""
    return scheme if isinstance(scheme, Scheme) else build(SCHEMES, scheme, "scheme")


__all__ = ["SCHEMES", "Feedback", "RouteTable", "Scheme", "check_scheme", "scheme_of"]
