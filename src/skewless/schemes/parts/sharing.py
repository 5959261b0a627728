"""What batches left uneven, shared out among the sources of the next.

A source knows only itself, and how many there will be nobody knows before the batch runs. So the
plan holds a source's share and the number of sources that it was divided by: together they are the
total, to which the loads that were sent in the end are added, whoever sent them. Sources that are
more than expected would mend more than there is, and unevenness would grow; fewer only leave some
of it to the next batch. So as many are expected as reported lately, at the most.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

KEPT = 0.9  # of the number of sources that was expected is expected again, if fewer came

Plan = TypeVar("Plan")


def shared_out(plan: Plan, report: Any) -> Plan:
    """The plan by which each source starts from its share of all that is still uneven."""
    before: Any = plan
    reported, expected = float(report.sources[0]), float(before.sources[0])
    if not reported:
        return plan
    # Of a plan that does not say it, the share was that of as many as there are now.
    uneven = before.start * (expected or reported) + report.loads
    expected = max(reported, KEPT * expected)
    start = (uneven - uneven.min()) / expected
    following: Plan = before._replace(start=start, sources=np.array([expected]))
    return following
