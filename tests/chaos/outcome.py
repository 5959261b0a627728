"""What a round of the campaign found, and the table of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field


@dataclass
class Outcome:
    """One round: what was done to it, and what came of it."""

    kind: str
    faults: Counter[str] = field(default_factory=Counter)  # while work was going on
    idle: Counter[str] = field(default_factory=Counter)  # the same, but nothing was going on
    lost: int = 0
    twice: int = 0
    hangs: int = 0
    refusals: int = 0  # one sentence instead of a result
    broken: list[str] = field(default_factory=list)  # anything else
    schemes: set[str] = field(default_factory=set)

    @property
    def good(self) -> bool:
        return not (self.lost or self.twice or self.hangs or self.broken)

    def compare(self, found: Mapping[Hashable, int], expected: Mapping[Hashable, int]) -> None:
        """Count what is missing from the totals, and what is there too often."""
        for key in found.keys() | expected.keys():
            more = found.get(key, 0) - expected.get(key, 0)
            self.lost += max(0, -more)
            self.twice += max(0, more)


def summary(outcomes: list[Outcome]) -> list[dict[str, object]]:
    """A row per kind of round."""
    rows: list[dict[str, object]] = []
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        mine = [outcome for outcome in outcomes if outcome.kind == kind]
        faults: Counter[str] = sum((o.faults for o in mine), Counter())
        idle: Counter[str] = sum((o.idle for o in mine), Counter())
        rows.append(
            {
                "round": kind,
                "rounds": len(mine),
                "faults": dict(faults),
                "faults while idle": dict(idle),
                **{n: sum(getattr(o, n) for o in mine) for n in ("lost", "twice", "hangs")},
                "refusals": sum(o.refusals for o in mine),
                "schemes": sorted(set().union(*(o.schemes for o in mine))),
                "broken": [text for o in mine for text in o.broken],
            }
        )
    return rows


def line(outcomes: list[Outcome]) -> str:
    """All rounds in one line of counts."""
    faults: Counter[str] = sum((o.faults for o in outcomes), Counter())
    kinds = ", ".join(f"{count} × {name}" for name, count in sorted(faults.items()))
    ends = {n: sum(getattr(o, n) for o in outcomes) for n in ("lost", "twice", "hangs")}
    broken = sum(len(o.broken) for o in outcomes)
    counts = ", ".join(f"{count} {name}" for name, count in {**ends, "broken": broken}.items())
    return f"{len(outcomes)} rounds: {kinds or 'no faults'}: {counts}"


def table(outcomes: list[Outcome]) -> str:
    """The summary in Markdown."""
    lines = [
        "| round | rounds | faults amid the work | lost | twice | hangs | refusals | broken |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in summary(outcomes):
        faults = row["faults"]
        assert isinstance(faults, dict)
        said = ", ".join(f"{count} × {name}" for name, count in sorted(faults.items())) or "none"
        cells = [row["round"], row["rounds"], said, row["lost"], row["twice"], row["hangs"]]
        broken = row["broken"]
        assert isinstance(broken, list)
        lines.append("| " + " | ".join(map(str, [*cells, row["refusals"], len(broken)])) + " |")
    return "\n".join(lines)
