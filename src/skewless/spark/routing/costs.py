"""Rows that cost more than others, and workers that do more than others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from skewless.errors import SkewlessError
from skewless.schemes import Scheme
from skewless.schemes.api import F64, ONE
from skewless.spark.input.costs import cost_numbers, is_usable

MOST_APART = 1_000_000  # the fastest worker over the slowest: beyond, loads are lost in rounding
_MOST_LEARNED = 1e200  # so that sums of what was learned stay finite, however it fades


def cost_column(df: DataFrame, scheme: Scheme, cost: str | Column | None) -> Column | None:
    """What each row costs, as a number of 0 or more; None if all cost the same.

    A cost that is null, negative or not finite counts as 0: it decides where a row goes, and
    nothing else.
    """
    if cost is None:
        return None
    _refuse_unless_known(scheme, "cost")
    number = cost_numbers(df, cost)
    return F.when(is_usable(number), number).otherwise(F.lit(0.0))


def capacities_of(scheme: Scheme, capacities: Sequence[float] | None) -> F64 | None:
    """How fast each worker is, compared with the others; None if all are alike."""
    if capacities is None:
        return None
    _refuse_unless_known(scheme, "capacities")
    rates: list[float] = []
    try:
        # A text is no number, though `float` would read it; 0 cannot be added to one.
        if not isinstance(capacities, Set | Mapping):  # of no order
            rates = [float(rate + 0) for rate in capacities]
    except (TypeError, ValueError, OverflowError):
        pass
    if not all(rate > 0 for rate in rates) or not 0 < sum(rates) < math.inf:
        raise SkewlessError(
            f"capacities is a list of numbers above 0, one for each worker, not {capacities!r}."
        )
    if max(rates) > MOST_APART * min(rates):
        raise SkewlessError(
            f"capacities may differ by a factor of {MOST_APART:,} at most, and these are from "
            f"{min(rates):g} to {max(rates):g}: leave the slowest workers out."
        )
    return np.array(rates)


def check_count(capacities: F64 | None, workers: int) -> None:
    """Refuse capacities of more or fewer workers than there are."""
    if capacities is not None and capacities.size != workers:
        raise SkewlessError(
            f"There are {capacities.size} capacities for {workers} workers: give one for each."
        )


def weighed(identity: Column, cost: Column | None) -> Column:
    """What a router takes of each row."""
    if cost is None:
        return identity
    return F.struct(identity.alias("identity"), cost.alias("cost"))


class Weights:
    """Identities and weights of rows as they come, with 1 for what the first ones cost on average.

    Schemes count in messages, so a cost in milliseconds must not weigh a thousand times one in
    seconds. What tasks learn for one plan is added up, so there costs stay in their own unit.
    """

    def __init__(self, scheme: Scheme) -> None:
        self._own_unit = scheme.learns != "nothing"
        self._unit = 0.0

    def of(self, rows: pa.Array) -> tuple[npt.NDArray[np.int64], F64]:
        """What `weighed` made, apart again."""
        if not pa.types.is_struct(rows.type):
            return rows.to_numpy(), ONE
        identities, costs = (part.to_numpy() for part in rows.flatten())
        if self._own_unit:
            return identities, np.minimum(costs, _MOST_LEARNED)
        if not self._unit and costs.size:
            most = float(costs.max()) or 1.0  # no float may hold their sum
            self._unit = most * float((costs / most).mean())
        return identities, costs / (self._unit or 1.0)


def _refuse_unless_known(scheme: Scheme, what: str) -> None:
    if not scheme.knows_costs:
        raise SkewlessError(
            f"Scheme '{scheme.spec}' counts rows, and knows nothing of costs and capacities: use "
            f"'graded', or leave {what}= out."
        )
