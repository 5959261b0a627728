"""Proactive Online Shuffle Grouping: figures 5–9, one parameter varied at a time.

As in figure 4, the paper's gains are those of costs that are known; its state machines at its
32,768 messages give less (see `proactive`). Checks hold what our own runs show, with room for few
streams; the paper's claims stand beside what came out in the notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any

from skewless.papers.proactive.runs import (
    FULL,
    KEYS,
    KNOWN,
    MASS_BACKLOG,
    PAPER,
    ROUND_ROBIN,
    VARIANTS,
    Completions,
    completion_panel,
    listed,
    speed_up_panel,
    sweep,
)
from skewless.results import Check, Panel, Reproduction, Setting, at_least, at_most, between

_TITLE = "Proactive Online Shuffle Grouping"


def _rows(axis: str, seen: Mapping[Any, Completions]) -> list[dict[str, Any]]:
    return [row for value, of in seen.items() for row in of.rows(**{axis: value})]


def _speed_up(of: Completions, label: str) -> float:
    return float(of.speed_ups(label).mean())


def _beside(claim: str, seen: Mapping[Any, Completions], labels: Sequence[str]) -> list[str]:
    """A claim of the paper, and the mean speed-ups that came out."""
    return [
        f"Paper: {claim}. Here, mean speed-up of "
        + "; ".join(f"{label}: {listed(seen, label)}" for label in labels)
        + "."
    ]


def _gains(seen: Mapping[Any, Completions]) -> Check:
    return at_least(
        "mass with backlog: mean speed-up over the figure",
        mean(_speed_up(of, MASS_BACKLOG) for of in seen.values()),
        1.02,
    )


def figure5(setting: Setting) -> Reproduction:
    """Figure 5: speed-up by over-provisioning."""
    percents = (95, 98, 100, 101, 102, 103, 105, 107, 109, 112, 115)
    by_share = sweep(setting, "provisioning", [p / 100 for p in percents], (*VARIANTS, KNOWN))
    seen = dict(zip(percents, by_share.values(), strict=True))
    checks = [
        at_least("mass with backlog: speed-up at 100 %", _speed_up(seen[100], MASS_BACKLOG), 1.05),
        at_least(
            "costs known: least speed-up from 95 % to 100 %",
            min(_speed_up(seen[p], KNOWN) for p in (95, 98, 100)),
            1.0,
        ),
        at_least(
            "with idle time backlog is quicker than the paper's rule (speed-ups' ratio, 105 %)",
            _speed_up(seen[105], MASS_BACKLOG) / _speed_up(seen[105], PAPER),
            1.1,
        ),
    ]
    notes = _beside(
        "at least 1.15 from 100 to 109 %, most (1.26) at 102 %, 1.07 at 115 %",
        seen,
        (*VARIANTS, KNOWN),
    )
    notes.append(
        "With idle time the first synchronisation hides more than it tells: it hands over all that "
        "workers did since the start, most of it long done, and those that did less get all "
        "messages until they have caught up. Costs known from the start leave nothing to repay, "
        "and show the paper's gains; backlog repays only what is still to be done."
    )
    return Reproduction(
        "proactive-fig5",
        f"{_TITLE}, figure 5: over-provisioning",
        _rows("provisioning_percent", seen),
        checks,
        [speed_up_panel("Zipf-1.0", "over-provisioning (%)", seen)],
        notes,
    )


def figure6(setting: Setting) -> Reproduction:
    """Figure 6: completion time by the greatest cost."""
    greatest = (4, 16, 64, 256, 1024)
    return _by_costs(
        setting,
        "proactive-fig6",
        "figure 6: the greatest cost",
        "w_max (ms)",
        {w: f"evenly:max={w},keys={KEYS}" for w in greatest},
        "speed-up 1.19 on average, whatever w_max",
    )


def figure7(setting: Setting) -> Reproduction:
    """Figure 7: completion time by the number of different costs."""
    numbers = (2, 4, 8, 16, 64, 256, 1024)
    return _by_costs(
        setting,
        "proactive-fig7",
        "figure 7: the number of costs",
        "w_n",
        {n: f"evenly:values={n},keys={KEYS}" for n in numbers},
        "19 % less on average, whatever w_n; times and their spread fall until w_n = 16",
    )


def _by_costs(
    setting: Setting, name: str, title: str, axis: str, costs: Mapping[int, str], claim: str
) -> Reproduction:
    by_spec = sweep(setting, "costs", list(costs.values()), (*VARIANTS, KNOWN, FULL))
    seen = {value: by_spec[spec] for value, spec in costs.items()}
    speed_ups = [_speed_up(of, KNOWN) for of in seen.values()]
    checks = [
        _gains(seen),
        at_least("costs known: least mean speed-up", min(speed_ups), 1.0),
    ]
    if name == "proactive-fig6":
        robin = [float(of.means_ms[ROUND_ROBIN].mean()) for of in seen.values()]
        checks += [
            at_least(
                "round robin: completion time grows with w_max (least step)",
                min(b / a for a, b in pairwise(robin)),
                2.0,
            ),
            at_most(
                "costs known: speed-up hardly depends on w_max (most ÷ least)",
                max(speed_ups) / min(speed_ups),
                1.4,
            ),
        ]
    else:
        few, many = (float(seen[n].means_ms[ROUND_ROBIN].mean()) for n in (2, 64))
        checks.append(
            at_least("round robin: completion time with 2 costs ÷ with 64", few / many, 1.2)
        )
    return Reproduction(
        name,
        f"{_TITLE}, {title}",
        _rows(axis, seen),
        checks,
        [
            completion_panel("completion time", axis, seen, log=True),
            speed_up_panel("speed-up", axis, seen, log_x=True),
        ],
        [*_beside(claim, seen, (*VARIANTS, KNOWN, FULL)), _robin_note(seen)],
    )


def _robin_note(seen: Mapping[Any, Completions]) -> str:
    spans = {value: of.means_ms[ROUND_ROBIN] for value, of in seen.items()}
    return "Round robin's completion time in ms, mean (least … most stream): " + ", ".join(
        f"{value}: {ms.mean():.0f} ({ms.min():.0f} … {ms.max():.0f})" for value, ms in spans.items()
    )


def figure8(setting: Setting) -> Reproduction:
    """Figure 8: speed-up by the number of workers."""
    workers = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    seen = sweep(setting, "workers", workers, (*VARIANTS, KNOWN))
    checks = [
        between(f"{label}: speed-up with one worker", _speed_up(seen[1], label), 0.999, 1.001)
        for label in (*VARIANTS, KNOWN)
    ]
    checks.append(
        at_least(
            "costs known: more workers gain more (speed-up at 10 ÷ at 2)",
            _speed_up(seen[10], KNOWN) / _speed_up(seen[2], KNOWN),
            1.0,
        )
    )
    notes = _beside(
        "1 with one worker, then slowly growing: + 4 % from 2 to 3, + 1 % from 9 to 10",
        seen,
        (*VARIANTS, KNOWN),
    )
    notes.append(
        "With more workers learning takes longer, for each must serve 2,048 messages: at 10 "
        "workers at least 20,480 of the 32,768 are round robin."
    )
    return Reproduction(
        "proactive-fig8",
        f"{_TITLE}, figure 8: the number of workers",
        _rows("workers", seen),
        checks,
        [speed_up_panel("Zipf-1.0", "workers", seen)],
        notes,
    )


def figure9(setting: Setting) -> Reproduction:
    """Figure 9: speed-up by the precision ε."""
    epsilons = (0.001, 0.003, 0.01, 0.03, 0.05, 0.09, 0.3, 0.9)
    seen = sweep(setting, "epsilon", epsilons, (*VARIANTS, KNOWN))
    known = [_speed_up(seen[e], KNOWN) for e in epsilons]
    checks = [
        at_least("costs known: speed-up at ε = 0.001 ÷ at 0.05", known[0] / known[4], 1.2),
        at_least("costs known: speed-up at ε = 0.05 ÷ at 0.9", known[4] / known[-1], 1.1),
    ]
    notes = _beside(
        "ten times smaller ε gives 30 % more speed-up; always above 1 from ε = 0.09 down",
        seen,
        (*VARIANTS, KNOWN),
    )
    notes.append(
        "Columns need messages: with many cells each is hit rarely, η of the paper's rule stays "
        "above μ and RUN begins late or never in 32,768 messages. ε = 1 is outside what is "
        "allowed, so the figure ends at 0.9."
    )
    panel: Panel = speed_up_panel("Zipf-1.0", "ε", seen, log_x=True)
    return Reproduction(
        "proactive-fig9",
        f"{_TITLE}, figure 9: precision",
        _rows("epsilon", seen),
        checks,
        [panel],
        notes,
    )
