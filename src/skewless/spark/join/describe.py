"""A plan of a join in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewless.folds.hottest import short

if TYPE_CHECKING:
    from skewless.spark.join.plan import JoinPlan

_SHOWN = 10


def describe(plan: JoinPlan) -> str:
    """Which keys are split how, what is copied, what is expected, and what it rests on."""
    sizes, kind = plan.sizes, plan.kind
    named = _key_of(plan)
    plain, planned = plan.evenness
    a_join = f"A{'n' * (kind.name == 'inner')} {kind.name} join on {named}"
    lines = [
        f"{a_join}: {sizes.left_rows:,.0f} rows on the left, "
        f"{sizes.right_rows:,.0f} on the right, {plan.partitions} partitions."
    ]
    if plan.plain and not sizes.left_rows + sizes.right_rows:
        return f"{a_join} is left to Spark as it is, because {plan.plain}."
    if plan.plain:
        lines.append(
            f"Left to Spark as it is, because {plan.plain}; with each row where its key belongs, "
            f"the fullest task would have {plain:.2f} times the mean work."
        )
        return "\n".join(lines)
    lines.append(
        f"The fullest task is expected to have {plain:.2f} times the mean work without this plan, "
        f"and {planned:.2f} with it (a result row counts {plan.choices.result_weight:g}, an input "
        "row 1)."
    )
    lines += _keys(plan) + _nulls(plan)
    a, b = plan.stripes_left, plan.stripes_right
    right = sizes.right.clip(max=1) if plan.distinct else sizes.right
    copies = ((b - 1) * sizes.left).sum() + ((a - 1) * right).sum()
    rows = max(1.0, sizes.left_rows + sizes.right_rows)
    lines.append(f"Copies: {copies:,.0f} more rows in the shuffle ({copies / rows:.1%}).")
    return "\n".join(lines + _grounds(plan))


def facts_of(plan: JoinPlan) -> dict[str, str]:
    """The plan in a few figures; those that a plan does not have are empty."""
    sizes, (plain, planned) = plan.sizes, plan.evenness
    counted = bool(sizes.left_rows + sizes.right_rows)
    return {
        "join": plan.kind.name,
        "key": _key_of(plan),
        "partitions": f"{plan.partitions:,}",
        "rows": f"{sizes.left_rows:,.0f} left, {sizes.right_rows:,.0f} right" if counted else "",
        "left to Spark, because": plan.plain,
        "hot keys": f"{len(plan.slots):,}, {len(_split(plan)):,} split" if plan.spreads else "",
        "fullest task ÷ mean": f"{plain:.2f} plain" * counted
        + f", {planned:.2f} with this plan" * plan.spreads,
    }


def _key_of(plan: JoinPlan) -> str:
    return ", ".join(a if a == b else f"{a} = {b}" for a, b in plan.pairs)


def _split(plan: JoinPlan) -> list[int]:
    """The hot keys that are split."""
    a, b = plan.stripes_left, plan.stripes_right
    return [i for i in range(a.size) if a[i] * b[i] > 1]


def _keys(plan: JoinPlan) -> list[str]:
    sizes, a, b = plan.sizes, plan.stripes_left, plan.stripes_right
    split = _split(plan)
    placed = a.size - len(split)
    lines = [f"Hot keys: {len(split)} split, {placed} placed whole."]
    lines += [
        f"  {short(sizes.names[i])}: {sizes.left[i]:,.0f} × {sizes.right[i]:,.0f} rows "
        f"in {a[i]} × {b[i]} cells"
        for i in split[:_SHOWN]
    ]
    if len(split) > _SHOWN:
        lines.append(f"  … and {len(split) - _SHOWN} more.")
    return lines


def _nulls(plan: JoinPlan) -> list[str]:
    lines = []
    for side, rows, slots in (
        ("left", plan.sizes.left_nulls, plan.null_slots_left),
        ("right", plan.sizes.right_nulls, plan.null_slots_right),
    ):
        if rows and slots.size:
            lines.append(
                f"{rows:,.0f} rows of the {side} with a null key are spread over {slots.size} "
                "slots, without copies."
            )
    return lines


def _grounds(plan: JoinPlan) -> list[str]:
    lines = []
    for side, may in (("left", plan.choices.split_left), ("right", plan.choices.split_right)):
        if not may:
            lines.append(
                f"No column besides the key tells rows of the {side} apart, so that side is not "
                "split."
            )
    if plan.kind.has_doubts:
        lines.append(
            "Some splits rest on it that the keys counted here exist in the rows joined."
            if plan.choices.exists
            else "Only splits are used that are exact whichever keys the rows joined will have."
        )
    return lines
