"""A plan that was learned: an object to show, keep, and hand over in place of a scheme."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

from pyspark.sql import DataFrame

from skewless.errors import SkewlessError
from skewless.hashing import check_seed
from skewless.schemes import Scheme, scheme_of
from skewless.schemes.api import F64, Arrays
from skewless.spark.input.checks import check_plan_path, check_scheme, make_plan, worker_count
from skewless.spark.report.codec import UnreadableError, facts_of, pack, unpack
from skewless.spark.routing.costs import capacities_of, check_count
from skewless.spark.routing.shown import table_of

FORMAT = 1


@dataclass(frozen=True, repr=False, eq=False)
class Plan:
    """What `learn` returns: a scheme that knows the hot keys of some DataFrame.

    Pass it wherever a scheme goes: `group(df, "word", plan)`, `route(df, "word", plan)`.

    key: the columns that it was learned from, with their types
    messages: how many rows it was learned from
    sample: which share of all rows they were
    arrays: the plan in the scheme's own form
    """

    scheme: Scheme
    workers: int
    seed: int
    key: tuple[str, ...]
    messages: int
    sample: float
    arrays: Arrays

    def __repr__(self) -> str:
        known = self.hot_keys
        about = "" if known is None else f", {known} hot key{'' if known == 1 else 's'}"
        return (
            f"Plan({self.scheme.spec}, {self.workers} workers{about}, learned from "
            f"{self.messages:,} rows by {', '.join(self.key)})"
        )

    def _repr_html_(self) -> str:
        known = self.hot_keys
        facts = {
            "scheme": self.scheme.spec,
            "workers": f"{self.workers:,}",
            "hot keys": "" if known is None else f"{known:,}",
            "learned from": f"{self.messages:,} rows, {self.sample:.3g} of all",
            "key": ", ".join(self.key),
            "seed": str(self.seed),
        }
        return table_of("Plan", facts)

    @property
    def hot_keys(self) -> int | None:
        """How many keys the plan knows one by one."""
        arrays: Any = self.arrays
        for field in ("head_keys", "keys"):
            if field in arrays._fields:
                return int(getattr(arrays, field).size)
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._packed() == other._packed()

    def __hash__(self) -> int:
        return hash(self._packed())

    def _packed(self) -> bytes:
        """The plan as bytes, the same for plans that are equal."""
        facts = {
            "format": FORMAT,
            "scheme": self.scheme.spec,
            "workers": self.workers,
            "seed": self.seed,
            "key": self.key,
            "messages": self.messages,
            "sample": self.sample,
        }
        return pack(facts, self.arrays)

    def save(self, path: str | Path) -> None:
        """Write the plan to a file of arrays; reading it back runs no code."""
        check_plan_path(path)
        try:
            Path(path).write_bytes(self._packed())
        except OSError as error:
            raise SkewlessError(
                f"The plan cannot be written to '{path}': {error.strerror}."
            ) from None

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan from a file."""
        check_plan_path(path)
        try:
            data = Path(path).read_bytes()
            facts = facts_of(data)
            if facts.get("format") != FORMAT:
                raise UnreadableError("of another version")
            scheme = scheme_of(facts["scheme"])
            _, (arrays,) = unpack(data, scheme.plan(facts["workers"], facts["seed"]))
        except OSError as error:
            raise SkewlessError(f"The plan '{path}' cannot be read: {error.strerror}.") from None
        except (UnreadableError, KeyError, TypeError, AttributeError) as error:
            why = error if isinstance(error, UnreadableError) else "of another version"
            raise SkewlessError(f"The plan '{path}' is {why}: learn it again.") from None
        about = (tuple(facts["key"]), facts["messages"], facts["sample"])
        return cls(scheme, facts["workers"], facts["seed"], *about, arrays)


class Chosen(NamedTuple):
    """How rows are routed, after all checks."""

    scheme: Scheme
    workers: int
    seed: int
    plan: Arrays
    capacities: F64 | None = None


def chosen(
    df: DataFrame,
    scheme: Scheme | str | Plan,
    workers: SupportsIndex | None,
    seed: int,
    plan: Plan | Arrays | None,
    learning: Callable[[Scheme], bool] = lambda scheme: False,
    capacities: Sequence[float] | None = None,
) -> Chosen:
    """What the user asked for: a scheme or a plan, which says for itself how many workers it has.

    learning: whether the scheme will learn by itself, and needs no plan before
    capacities: how fast the workers are; without a number of workers, there is one for each
    """
    if isinstance(scheme, Plan):
        if plan is not None:
            raise SkewlessError("A plan was given twice: leave plan= out.")
        plan, scheme = scheme, scheme.scheme
    made = check_scheme(scheme)
    if isinstance(plan, Plan):
        _check(plan, made, workers, seed)
        if capacities is not None:
            raise SkewlessError(
                "The plan has placed its keys already: give capacities= to learn, and leave it "
                "out here."
            )
        return Chosen(made, plan.workers, plan.seed, plan.arrays)
    if plan is not None:
        warnings.warn(
            "A plan is an object now: hand over what `learn` gives, in place of the scheme.",
            DeprecationWarning,
            stacklevel=4,
        )
    rates = capacities_of(made, capacities)
    given = rates.size if rates is not None and workers is None else workers
    count, number = worker_count(df, given), check_seed(seed)
    check_count(rates, count)
    first = make_plan(made, count, number, plan, learning(made), rates)
    return Chosen(made, count, number, first, rates)


def _check(plan: Plan, scheme: Scheme, workers: SupportsIndex | None, seed: int) -> None:
    asked = {
        "scheme": (scheme.spec, plan.scheme.spec),
        "number of workers": (plan.workers if workers is None else workers, plan.workers),
        "seed": (check_seed(seed) or plan.seed, plan.seed),
    }
    for what, (wanted, has) in asked.items():
        if wanted != has:
            raise SkewlessError(
                f"The plan's {what} is {has}, not {wanted}: leave it out, for the plan says it, or "
                "learn another plan."
            )
