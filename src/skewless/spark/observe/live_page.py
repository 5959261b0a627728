"""The observer's way to a live page: records and workers' reports as what the page shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from skewless.live import HotKey, Page, PlanFacts, Sight
from skewless.live.page import borrowed, given_back
from skewless.spark.report.task import WorkerReport

if TYPE_CHECKING:
    from skewless.spark.observe.observer import Record

KEYS_SHOWN = 8


class LivePage:
    """A page that was handed in, or that is borrowed from this process by its port."""

    def __init__(self, page: Page | int) -> None:
        self._own = not isinstance(page, Page)
        self.page = page if isinstance(page, Page) else borrowed(page)

    def show(
        self,
        record: Record,
        seen: Iterable[WorkerReport],
        plan: PlanFacts | None,
        name: str | None = None,
    ) -> None:
        """Show a record.

        name: what the query is called; by its scheme, if it has no name
        """
        self.page.show(
            Sight(
                query=record.run,
                name=name or record.scheme,
                scheme=record.scheme,
                batch=record.batch,
                ended_s=record.ended_s,
                messages=record.messages,
                loads=record.loads,
                busy_s=record.busy_s,
                max_over_mean=record.max_over_mean,
                stddev_percent=record.stddev_percent,
                replication=record.replication,
                seconds=record.seconds,
                messages_per_second=record.messages_per_second,
                hot=hottest(seen),
                plan=plan,
            )
        )

    def close(self) -> None:
        """Give a borrowed page back, once."""
        if self._own:
            self._own = False
            given_back(self.page)


def hottest(seen: Iterable[WorkerReport]) -> list[HotKey] | None:
    """The hottest keys of all workers together; None if no worker counted any."""
    counted = [report.hot for report in seen if report.hot is not None]
    if not counted:
        return None
    found: dict[str | None, list[int]] = {}
    for hot in counted:
        for name, messages in hot:
            found.setdefault(name, []).append(messages)
    keys = [HotKey(name, sum(counts), len(counts)) for name, counts in found.items()]
    return sorted(keys, key=lambda key: key.messages, reverse=True)[:KEYS_SHOWN]
