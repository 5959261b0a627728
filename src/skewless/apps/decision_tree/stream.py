"""Grow a tree on a stream, tested by each micro-batch before it learns from it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from skewless.apps.columns import label_type
from skewless.apps.decision_tree.fold import KIND, as_dict, from_dict
from skewless.apps.decision_tree.grow import Held, add, collected, grouped, grow, messages
from skewless.apps.decision_tree.model import DecisionTreeModel
from skewless.apps.decision_tree.tree import Tree
from skewless.apps.learning import Learned, LearningFolder, notes_of, share_right, tested

if TYPE_CHECKING:
    from skewless.apps.decision_tree.api import DecisionTree
    from skewless.schemes import Scheme

SCHEMA = pa.schema(
    [("leaf", pa.int64()), ("feature", pa.int64()), ("number", pa.int64()), ("histogram", KIND)]
)


class TreeLearner:
    """A function for `writeStream.foreachBatch`; made by `DecisionTree.learner`.

    The aggregation period is the micro-batch: workers make histograms of what it brings, the driver
    merges them into those of the tree's leaves, and splits leaves that have seen enough.
    """

    def __init__(
        self,
        wanted: DecisionTree,
        folder: str,
        scheme: Scheme | str,
        workers: int | None,
        grace: int,
    ) -> None:
        self.wanted, self.scheme, self.workers, self.grace = wanted, scheme, workers, grace
        facts = {"label": wanted.label, "features": list(wanted.features), "bins": wanted.bins}
        self.folder = LearningFolder(folder, facts)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Be tested by a micro-batch, then learn from it."""
        before = self.folder.newest()
        if self.folder.knows(batch):
            return
        wanted, features = self.wanted, tuple(self.wanted.features)
        wanted.check(rows)
        tree, held = self._known(before)
        growing = [leaf for leaf in tree.leaves() if tree.depth[leaf] < wanted.depth]
        rows = rows.persist()
        try:
            prediction = self._model(tree, label_type(rows, wanted.label)).prediction
            record = tested(rows, wanted.label, prediction if tree.classes else None)
            new = messages(rows, wanted.label, features, tree, growing)
            table = collected(grouped(new, self.scheme, self.workers, 0), wanted.bins)
        finally:
            rows.unpersist()
        add(held, tree, table, wanted.bins)
        grow(tree, held, len(features), wanted.depth, wanted.criterion, wanted.bins, self.grace)
        notes = {
            **notes_of(before, batch, record),
            "tree": asdict(tree),
            "label": str(label_type(rows, wanted.label)),
        }
        self.folder.keep(Learned(batch, _table(held), notes))

    def model(self) -> DecisionTreeModel | None:
        """The newest tree, or None before the first row with a label."""
        learned = self.folder.newest()
        tree, _ = self._known(learned)
        if learned is None or not tree.classes:
            return None
        return self._model(tree, pa.type_for_alias(learned.notes["label"]))

    def history(self) -> list[dict[str, Any]]:
        """Of the last thousand micro-batches: number, rows `tested` and those that were `right`."""
        learned = self.folder.newest()
        return [] if learned is None else list(learned.notes["history"])

    def accuracy(self) -> float | None:
        """The share of rows that were right when they came, None if none was tested."""
        return share_right(self.folder.newest())

    def _model(self, tree: Tree, kind: pa.DataType) -> DecisionTreeModel:
        return DecisionTreeModel(tree, tuple(self.wanted.features), kind)

    def _known(self, learned: Learned | None) -> tuple[Tree, Held]:
        if learned is None:
            return Tree(), {}
        held: Held = {}
        for row in learned.table.to_pylist():
            of_leaf = held.setdefault(row["leaf"], {})
            of_leaf[row["feature"], row["number"]] = from_dict(row["histogram"])
        return Tree(**learned.notes["tree"]), held


def _table(held: Held) -> pa.Table:
    rows = [
        {"leaf": leaf, "feature": feature, "number": number, "histogram": as_dict(one)}
        for leaf, of_leaf in held.items()
        for (feature, number), one in of_leaf.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMA)
