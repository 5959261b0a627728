"""A tree as lists, one entry per node; the root is node 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skewless.apps.decision_tree.histogram import F64
from skewless.apps.decision_tree.splits import Split

I64 = npt.NDArray[np.int64]
LEAF = -1


@dataclass
class Tree:
    """It begins as one leaf. Classes are numbered in the order in which they were first seen."""

    classes: list[Any] = field(default_factory=list)
    feature: list[int] = field(default_factory=lambda: [LEAF])
    threshold: list[float] = field(default_factory=lambda: [0.0])
    left: list[int] = field(default_factory=lambda: [LEAF])
    right: list[int] = field(default_factory=lambda: [LEAF])
    missing_left: list[bool] = field(default_factory=lambda: [False])
    depth: list[int] = field(default_factory=lambda: [0])
    counts: list[list[float]] = field(default_factory=lambda: [[]])

    def class_number(self, label: Any) -> int:
        """The number of a class, which may be new."""
        if label not in self.classes:
            self.classes.append(label)
            for counts in self.counts:
                counts.append(0.0)
        return self.classes.index(label)

    def leaves(self) -> list[int]:
        """The nodes that are not split."""
        return [node for node, feature in enumerate(self.feature) if feature == LEAF]

    def leaves_of(self, rows: F64) -> I64:
        """The leaf of each row; one without the value goes where most rows went."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        missing_left = np.array(self.missing_left)
        at, every = np.zeros(len(rows), np.int64), np.arange(len(rows))
        for _ in range(max(self.depth)):
            values = rows[every, feature[at]]
            goes_left = np.where(np.isnan(values), missing_left[at], values <= threshold[at])
            further = np.where(goes_left, left[at], right[at])
            at = np.where(feature[at] == LEAF, at, further)
        return at

    def split(self, node: int, how: Split) -> None:
        """Make a leaf an inner node with two leaves."""
        first = len(self.feature)
        self.feature[node], self.threshold[node] = how.feature, how.threshold
        self.left[node], self.right[node] = first, first + 1
        self.missing_left[node] = bool(how.left.sum() >= how.right.sum())
        for counts in (how.left, how.right):
            self.feature.append(LEAF)
            self.threshold.append(0.0)
            self.left.append(LEAF)
            self.right.append(LEAF)
            self.missing_left.append(False)
            self.depth.append(self.depth[node] + 1)
            self.counts.append(counts.tolist())

    def majority(self, node: int) -> int:
        """The class with most rows at a node, of equals the lesser; its number."""
        pairs = zip(self.counts[node], self.classes, strict=True)
        most = min((-count, label, number) for number, (count, label) in enumerate(pairs))
        return int(most[2])

    def walk(self) -> Iterator[tuple[int, int, bool]]:
        """Every node with its parent and whether it is on the left, parents first, left first."""
        waiting = [(0, LEAF, False)]
        while waiting:
            node, parent, on_left = waiting.pop()
            yield node, parent, on_left
            if self.feature[node] != LEAF:
                waiting += [(self.right[node], node, False), (self.left[node], node, True)]

    def text(self, features: tuple[str, ...]) -> str:
        """The tree in words, one line per node."""
        lines = []
        for node, parent, on_left in self.walk():
            line = "  " * max(self.depth[node] - 1, 0)
            if parent != LEAF:
                sign = "≤" if on_left else ">"
                line += f"{features[self.feature[parent]]} {sign} {self.threshold[parent]:.6g}"
            if self.feature[node] == LEAF:
                line += f"{': ' if parent != LEAF else ''}{self.describe(node)}"
            if line.strip():
                lines.append(line)
        return "\n".join(lines)

    def describe(self, node: int) -> str:
        """The class of a leaf, and of how many rows."""
        counts = self.counts[node]
        most = self.majority(node)
        return f"{self.classes[most]} ({counts[most]:.0f} of {sum(counts):.0f})"
