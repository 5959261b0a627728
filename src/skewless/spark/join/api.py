"""`join` and `learn_join`: what a user calls, checked before any job starts."""

from __future__ import annotations

import logging
import math
import reprlib
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import SupportsIndex

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from skewless.arguments import number, whole
from skewless.errors import SkewlessError
from skewless.spark.input.checks import PARTITIONS, check_server, worker_count
from skewless.spark.input.version import unlogged
from skewless.spark.join.broadcast import broadcast_side, may_leave_keys
from skewless.spark.join.counting import count, keys_of
from skewless.spark.join.expected import expected_of
from skewless.spark.join.explained import as_batch, explained, is_repeatable, why_keys_do_not_matter
from skewless.spark.join.keys import JoinKeys, On, join_keys
from skewless.spark.join.kinds import Kind, kind_of
from skewless.spark.join.plan import Choices, JoinPlan, as_pairs, make_plan
from skewless.spark.join.rewrite import plain_join, spread_join
from skewless.spark.join.salt import SaltColumns, salts
from skewless.spark.join.sizes import nothing_counted
from skewless.spark.join.stream import keep_plan, kept_plan

_LOG = logging.getLogger("skewless")


def join(
    left: DataFrame,
    right: DataFrame,
    on: On,
    how: str = "inner",
    *,
    workers: SupportsIndex | None = None,
    plan: JoinPlan | None = None,
    salt: SaltColumns | None = None,
    result_weight: float = 1.0,
    target: float = 0.05,
    repeatable: bool = True,
    checkpoint: str | None = None,
) -> DataFrame:
    """Exactly `left.join(right, on, how)`, with the work of hot keys spread evenly over tasks.

    Without a plan, it first counts the keys of both sides, in one or two short jobs, seldom more.

    on: a column's name, a list of names, or a list of pairs (left column, right column), which may
        be followed by further conditions as Columns
    how: a join type in any spelling that Spark takes
    workers: the number of partitions; by default spark.sql.shuffle.partitions
    plan: what `learn_join` returned, perhaps for other rows of the same kind; nothing is counted
        then
    salt: what tells rows of one key apart: a column's name, a Column or a list of them, of which
        each side uses those it has; by default, all columns besides the key
    result_weight: the cost of a result row, where an input row costs 1; raise it if costly work
        follows the join
    target: by how much the fullest task may exceed the mean
    repeatable: False if a side may give different rows when it is read again; then only those
        splits are used that are exact nevertheless
    checkpoint: for a join of two streams, the folder of the query's checkpoint, where its plan is
        kept; a restart continues with it
    """
    kind, keys, outcome = _checked(left, right, on, how)
    if plan is not None and not isinstance(plan, JoinPlan):
        raise SkewlessError(f"A plan of a join is what learn_join gave, not {reprlib.repr(plan)}.")
    if not isinstance(repeatable, bool):
        raise SkewlessError(f"repeatable is True or False, not {reprlib.repr(repeatable)}.")
    salted = salts(left, right, keys, salt)
    choices = _choices(result_weight, target, keys, salted)
    streaming = left.isStreaming or right.isStreaming
    both_stream = left.isStreaming and right.isStreaming
    partitions = _partitions(left, workers, keys, both_stream)
    batch = as_batch(left, right, keys, how) if streaming and not both_stream else outcome
    asked = (plan is not None or streaming or kind.has_doubts) and not both_stream
    words = explained(batch) if asked and not keys.plain else ""
    unkeyed = why_keys_do_not_matter(words, kind)
    if plan is not None:
        plan = plan.for_join(kind, distinct=not keys.conditions and not right.isStreaming)
    if both_stream:
        plan = _stream_plan(plan, checkpoint, keys, kind, partitions)
    elif checkpoint is not None:
        raise SkewlessError(
            "A checkpoint keeps the plan of a join of two streams, and these are not two streams: "
            "leave checkpoint= out."
        )
    elif plan is not None:
        plan.check(keys, partitions if workers is not None or keys.floating else None)
    elif streaming:
        raise SkewlessError(
            "The keys of a stream cannot be counted before they come: learn a plan from earlier "
            "rows with learn_join, and hand it to plan=."
        )
    if unkeyed:
        plan = _uncounted(keys, kind, partitions, choices, unkeyed)
    elif plan is None:
        exists = repeatable and not keys.conditions and not keys.nested
        exists = exists and (not kind.has_doubts or is_repeatable(words))
        unasked = None if asked else outcome
        choices = replace(choices, exists=exists)
        plan = _learned(left, right, keys, kind, partitions, choices, unasked)
    _LOG.info("%s", plan.describe())
    if not plan.spreads or keys.plain:
        return outcome
    fixed = not keys.floating and not both_stream
    return spread_join(left, right, keys, how, plan, salted, fixed)


def learn_join(
    left: DataFrame,
    right: DataFrame,
    on: On,
    how: str = "inner",
    *,
    workers: SupportsIndex | None = None,
    salt: SaltColumns | None = None,
    result_weight: float = 1.0,
    target: float = 0.05,
    sample: float | None = None,
    seed: int = 0,
) -> JoinPlan:
    """Count the keys of both sides and plan their join: a plan to show, keep and reuse.

    You may use it for other rows than these, so it has only splits that are exact for any rows.

    on, how, workers, salt, result_weight, target: as for `join`
    sample: the share of the rows to read, drawn at random; by default 1 %, or more of small tables
    """
    kind, keys, outcome = _checked(left, right, on, how)
    if left.isStreaming or right.isStreaming:
        raise SkewlessError(
            "A plan is learned from batch DataFrames, not from a stream: read a part of the "
            "stream's data as a batch."
        )
    if sample is not None and not 0 < number("The sample", sample) <= 1:
        raise SkewlessError(f"The sample is a share of the rows in (0, 1], not {sample}.")
    choices = _choices(result_weight, target, keys, salts(left, right, keys, salt))
    partitions = _partitions(left, workers, keys)
    # Spark takes a seed of 64 bits, and each side has its own.
    seed = whole("A seed", seed) % (1 << 62)
    sampled = sample, seed
    return _learned(left, right, keys, kind, partitions, choices, outcome, sampled, counts=True)


def _checked(
    left: DataFrame, right: DataFrame, on: On, how: str
) -> tuple[Kind, JoinKeys, DataFrame]:
    """The type of the join, its keys, and Spark's own join of them."""
    check_server(left)
    check_server(right)
    kind = kind_of(how)
    keys = join_keys(left, right, on)
    try:
        with unlogged():
            outcome = plain_join(left, right, keys, how)
            _ = outcome.schema  # Spark Connect analyses no sooner
    except AnalysisException as error:
        fault = _fault_of_conditions(left, right, keys, how) or error
        raise SkewlessError(f"Spark cannot do this join: {str(fault).splitlines()[0]}") from None
    return kind, keys, outcome


def _fault_of_conditions(
    left: DataFrame, right: DataFrame, keys: JoinKeys, how: str
) -> AnalysisException | None:
    """What Spark says against the conditions alone; of the whole join it would name our columns."""
    if not keys.conditions:
        return None
    try:
        with unlogged():
            _ = left.join(right, reduce(and_, keys.conditions), how).schema
    except AnalysisException as error:
        return error
    return None


def _choices(
    result_weight: float,
    target: float,
    keys: JoinKeys,
    salted: tuple[Column | None, Column | None],
) -> Choices:
    for what, value in (("weight of a result row", result_weight), ("target", target)):
        if not math.isfinite(number(f"The {what}", value)):
            raise SkewlessError(f"The {what} is a finite number, not {value}.")
    if result_weight < 0:
        raise SkewlessError(f"The weight of a result row is 0 or more, not {result_weight}.")
    if target <= 0:
        raise SkewlessError(f"The target is a share above 0, such as 0.05, not {target}.")
    return Choices(
        result_weight=float(result_weight),
        target=float(target),
        split_left=salted[0] is not None,
        split_right=salted[1] is not None,
        distinct=not keys.conditions,
    )


def _partitions(
    df: DataFrame, workers: SupportsIndex | None, keys: JoinKeys, both_stream: bool = False
) -> int:
    default, wanted = worker_count(df, None), worker_count(df, workers)
    if (keys.floating or both_stream) and wanted != default:
        what = "Two streams" if both_stream else "Keys of floating-point numbers"
        raise SkewlessError(
            f"{what} are placed by Spark alone, on {default} partitions: leave workers= out or set "
            f"{PARTITIONS} to {wanted}."
        )
    return wanted


def _learned(
    left: DataFrame,
    right: DataFrame,
    keys: JoinKeys,
    kind: Kind,
    partitions: int,
    choices: Choices,
    unasked: DataFrame | None,
    sampled: tuple[float | None, int] = (None, 0),
    counts: bool = False,
) -> JoinPlan:
    """Count and plan, unless the keys cannot be spread at all or do not matter.

    unasked: the join, if Spark was not asked yet whether it places rows of it by key
    sampled: the share of the rows to read, and the seed that it is drawn with
    counts: whether keys are counted even if they do not matter
    """
    if keys.plain:
        # Nor could all of them be counted: only Spark knows by which type they are compared.
        return _uncounted(keys, kind, partitions, choices, keys.plain)
    expected, plain = expected_of(*keys_of(left, right, keys)), ""
    if unasked is not None and may_leave_keys(left, expected):
        plain = why_keys_do_not_matter(explained(unasked), kind)
        if plain and not counts:
            return _uncounted(keys, kind, partitions, choices, plain)
    weight = choices.result_weight
    sizes = count(left, right, keys, kind, partitions, weight, expected, *sampled)
    plain = plain or broadcast_side(left, right, kind, sizes)
    return make_plan(sizes, kind, as_pairs(keys), keys.types, choices, plain)


def _uncounted(
    keys: JoinKeys, kind: Kind, partitions: int, choices: Choices, plain: str
) -> JoinPlan:
    """The plan of a join that is left to Spark whatever its keys are."""
    sizes = nothing_counted(partitions)
    return make_plan(sizes, kind, as_pairs(keys), keys.types, choices, plain)


def _stream_plan(
    plan: JoinPlan | None, checkpoint: str | None, keys: JoinKeys, kind: Kind, partitions: int
) -> JoinPlan:
    """The plan that the checkpoint has, or the one given, which is kept there from now on."""
    if checkpoint is None:
        raise SkewlessError(
            "A join of two streams keeps its plan where its state is: give the folder of the "
            "query's checkpoint as checkpoint=."
        )
    kept = kept_plan(checkpoint, keys, kind)
    if plan is not None:
        # Spark goes on with the number of partitions that a stream began with.
        plan.check(keys, None if kept else partitions)
        keep_plan(checkpoint, keys, kind, plan)
        return plan
    if kept is None:
        raise SkewlessError(
            f"The checkpoint '{checkpoint}' has no plan of this join yet: learn one from earlier "
            "rows with learn_join, and hand it to plan=."
        )
    return kept
