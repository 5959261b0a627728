"""Learn on a stream, and be tested by each micro-batch before learning from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from skewless.apps.learning import Learned, LearningFolder, notes_of, share_right, tested
from skewless.apps.naive_bayes.moments import PARTS, merge_moments
from skewless.apps.naive_bayes.statistics import KEY
from skewless.folds.groups import group_rows

if TYPE_CHECKING:
    from skewless.apps.naive_bayes.api import NaiveBayes
    from skewless.apps.naive_bayes.model import NaiveBayesModel
    from skewless.schemes import Scheme


class BayesLearner:
    """A function for `writeStream.foreachBatch`; made by `NaiveBayes.learner`.

    Each micro-batch is first predicted with the model that there is, then learned from
    (prequential, or test-then-train). Spark's checkpoint and the folder together make each batch
    count once.
    """

    def __init__(
        self, bayes: NaiveBayes, folder: str, scheme: Scheme | str, workers: int | None
    ) -> None:
        self.bayes, self.scheme, self.workers = bayes, scheme, workers
        facts = {"label": bayes.label, "features": list(bayes.features), "kind": bayes.kind}
        self.folder = LearningFolder(folder, facts)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Be tested by a micro-batch, then learn from it."""
        before = self.folder.newest()
        if self.folder.knows(batch):
            return
        rows = rows.persist()
        try:
            model = self._model(before)
            record = tested(rows, self.bayes.label, model.prediction if model else None)
            new = self.bayes.statistics(rows, self.scheme, self.workers)
        finally:
            rows.unpersist()
        table = new if before is None else merged(before.table, new)
        notes = notes_of(before, batch, record)
        self.folder.keep(Learned(batch, table, notes))

    def model(self) -> NaiveBayesModel | None:
        """The newest model, or None before the first row with a label."""
        return self._model(self.folder.newest())

    def history(self) -> list[dict[str, Any]]:
        """Of the last thousand micro-batches: number, rows `tested` and those that were `right`."""
        learned = self.folder.newest()
        return [] if learned is None else list(learned.notes["history"])

    def accuracy(self) -> float | None:
        """The share of rows that were right when they came, None if none was tested."""
        return share_right(self.folder.newest())

    def _model(self, learned: Learned | None) -> NaiveBayesModel | None:
        if learned is None or not learned.table.num_rows:
            return None
        return self.bayes.model(learned.table)


def merged(a: pa.Table, b: pa.Table) -> pa.Table:
    """The statistics of both."""
    both = pa.concat_tables([a, b.cast(a.schema)]).combine_chunks()
    if not both.num_rows:
        return both
    groups, keys = group_rows([_whole(both[name]) for name in KEY])
    n, mean, m2 = (both[part].to_numpy().astype(np.float64) for part in PARTS)
    parts = merge_moments(groups, n, mean, m2)
    return pa.Table.from_arrays([*keys, *map(pa.array, parts)], schema=a.schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    chunks = column.combine_chunks()
    return chunks if isinstance(chunks, pa.Array) else pa.concat_arrays(chunks.chunks)
