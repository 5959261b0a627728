"""The page of a stream or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewless.diagnose.page import svg
from skewless.diagnose.page.page import code, notes, table, text
from skewless.diagnose.units import percent, times

if TYPE_CHECKING:
    from skewless.diagnose.data import Diagnosis, KeyRanking


def data_body(found: Diagnosis) -> str:
    """Everything there is to say of one key."""
    chosen = (
        [c.scheme for c in found.candidates].index(found.choice) if _has_choice(found) else None
    )
    most = max((max(c.loads) * len(c.loads) for c in found.candidates), default=1.0)
    plots = "".join(
        f"<figure>{svg.loads(c.loads, max(most, 1.2))}<figcaption>{text(c.scheme)}: "
        f"{times(c.time_over_ideal)} × ideal</figcaption></figure>"
        for c in found.candidates
    )
    facts = f"{found.messages:,} messages, {found.keys:,} keys, {found.nulls:,} nulls"
    return "".join(
        [
            f"<h1>{text(found.subject)}</h1>",
            f'<p class="soft">by {text(found.key)}: {facts}; {found.workers:,} workers, '
            f"{found.sources:,} sources; work: {text(found.work)}</p>",
            f'<p class="verdict">{text(found.verdict)}</p>',
            code(found.code),
            "<h2>The hottest keys</h2>",
            svg.shares([(h.key, h.share, h.error) for h in found.hot])
            if found.hot
            else "<p>There is no message, and so no key.</p>",
            "<h2>Load per worker under each candidate</h2>",
            '<p class="soft">The dashed line is an even share.</p>',
            f'<div class="plots">{plots}</div>',
            "<h2>Candidates</h2>",
            table(
                ["candidate", "#time ÷ ideal", "#fullest ÷ mean", "#workers per key"],
                [
                    [
                        text(c.scheme),
                        times(c.time_over_ideal),
                        times(c.max_over_mean),
                        times(c.replication),
                    ]
                    for c in found.candidates
                ],
                chosen,
            ),
            notes(found.notes),
        ]
    )


def _has_choice(found: Diagnosis) -> bool:
    return any(c.scheme == found.choice for c in found.candidates)


def ranking_body(ranking: KeyRanking) -> str:
    """Several keys, the worst first, then each by itself."""
    rows = [
        [
            text(d.key),
            f"{d.keys:,}",
            f"{d.nulls:,}",
            text(d.hot[0].key) if d.hot else "",
            percent(d.hot[0].share) if d.hot else "",
            times(d.candidates[0].time_over_ideal),
            text(d.choice),
        ]
        for d in ranking.diagnoses
    ]
    headings = ["~key", "#keys", "#nulls", "~hottest", "#share", "#time ÷ ideal by hash", "choice"]
    parts = [
        f"<details><summary>{text(d.key)}: {text(d.verdict)}</summary>{data_body(d)}</details>"
        for d in ranking.diagnoses
    ]
    worst = text(ranking.diagnoses[0].key)
    return f"<h1>Worst key: {worst}</h1>{table(headings, rows)}{''.join(parts)}"
