"""The streaming parallel decision tree: grown from histograms, in batch or on a stream.

Ben-Haim and Tom-Tov: "A Streaming Parallel Decision Tree Algorithm" (JMLR 11, 2010), distributed as
Partial Key Grouping, section 4.1, has it: a message is one feature of a row, its key is (leaf,
feature, class), so that a histogram lives on two workers and not on all of them.
"""

from __future__ import annotations

from skewless.apps.decision_tree.api import DecisionTree
from skewless.apps.decision_tree.model import DecisionTreeModel
from skewless.apps.decision_tree.stream import TreeLearner

__all__ = ["DecisionTree", "DecisionTreeModel", "TreeLearner"]
