"""Messages that could not be read: how many, why, and where the first one is."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skewless.spark.lab.kafka import REASONS
from skewless.spark.observe.progress import after_each_batch


class BadMessages:
    """Counts them batch by batch; of the batches that ended in this run."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.first: tuple[int, int] | None = None  # partition and offset
        self._batches: Counter[int] = Counter()
        self._metric = f"skewless-bad-{uuid.uuid4().hex[:12]}"

    @property
    def total(self) -> int:
        """How many there were."""
        return self.reasons.total()

    def of_batch(self, batch: int | None) -> int:
        """How many a batch had."""
        return 0 if batch is None else self._batches[batch]

    def left_out(self, judged: DataFrame) -> DataFrame:
        """The messages that have no reason to be left out; the others are counted."""
        reason = F.col("reason")
        place = F.min(F.when(reason.isNotNull(), F.struct("partition", "offset")))
        counts = [F.count_if(reason == why).alias(f"r{i}") for i, why in enumerate(REASONS)]
        after_each_batch(judged.sparkSession, self._metric, self._batch_done)
        seen = judged.observe(self._metric, place.alias("first"), *counts)
        return seen.where(reason.isNull())

    def _batch_done(self, progress: Any) -> None:
        row = progress.observedMetrics[self._metric]
        found = {why: row[f"r{i}"] for i, why in enumerate(REASONS) if row[f"r{i}"]}
        self.reasons.update(found)
        if found:
            self._batches[int(progress.batchId)] += sum(found.values())
            if self.first is None:
                self.first = (row["first"]["partition"], row["first"]["offset"])

    def as_json(self) -> dict[str, Any]:
        """For `--json`."""
        first = None
        if self.first is not None:
            first = dict(zip(("partition", "offset"), self.first, strict=True))
        return {"total": self.total, "reasons": dict(self.reasons), "first": first}

    def sentence(self, topic: str) -> str:
        """For people."""
        if self.first is None:
            return "Every message could be read."
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
        partition, offset = self.first
        return (
            f"{self.total:,} messages could not be read and were left out: {why}; the first is in "
            f"{topic}, partition {partition}, offset {offset}."
        )
