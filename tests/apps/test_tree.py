"""The decision tree without Spark: splits and accuracy against scikit-learn."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from river import datasets
from river import tree as river_tree
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from skewless.apps.decision_tree.grow import ROWS, grow
from skewless.apps.decision_tree.histogram import empty, histogram, merged, merged_all
from skewless.apps.decision_tree.splits import best_split, entropy, gini
from skewless.apps.decision_tree.tree import Tree

KDD = Path(__file__).parents[3] / "shared" / "data" / "kdd99_10pct.tsv.gz"


def learned(x, y, depth, bins=64, criterion="gini", workers=2):
    """A tree from histograms that `workers` workers made of a part of the rows each."""
    tree = Tree()
    numbers = np.array([tree.class_number(label) for label in y.tolist()])
    home = np.arange(len(y)) % workers
    for level in range(depth + 1):
        at = tree.leaves_of(x)
        held = {}
        for leaf in tree.leaves():
            mine = at == leaf
            counts = np.bincount(numbers[mine], minlength=len(tree.classes))
            tree.counts[leaf] = counts.astype(float).tolist()
            if tree.depth[leaf] != level or level == depth:
                continue
            held[leaf] = {(ROWS, c): histogram(np.zeros(n), bins) for c, n in enumerate(counts)}
            for c in np.flatnonzero(counts):
                for f in range(x.shape[1]):
                    parts = [x[mine & (numbers == c) & (home == w), f] for w in range(workers)]
                    made = [histogram(part, bins) for part in parts]
                    held[leaf][f, int(c)] = merged_all(made, bins)
        if not grow(tree, held, x.shape[1], depth, criterion, bins, 2):
            break
    return tree


def accuracy(tree, x, y):
    labels = [tree.classes[tree.majority(node)] for node in range(len(tree.feature))]
    return np.mean([labels[leaf] for leaf in tree.leaves_of(x)] == y)


def kdd():
    """Service, protocol and flag by how frequent they are, and bytes."""
    with gzip.open(KDD, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    picked = np.random.default_rng(0).choice(len(rows), 20_000, replace=False)
    columns = list(zip(*(rows[i] for i in picked), strict=True))
    x = [np.array(columns[4], float)]
    for column in (columns[0], columns[2], columns[3]):
        ranks = {value: rank for rank, (value, _) in enumerate(Counter(column).most_common())}
        x.append(np.array([ranks[value] for value in column], float))
    return np.column_stack(x), np.array(columns[1])


SETS = {
    "drawn": (
        lambda: make_classification(4000, 10, n_informative=6, n_classes=3, random_state=0),
        4,
    ),
    "cancer": (lambda: load_breast_cancer(return_X_y=True), 20),
    "digits": (lambda: load_digits(return_X_y=True), 4),
    "kdd": (kdd, 4),
}


@pytest.mark.parametrize("name", SETS)
def test_accuracy_is_within_a_point_of_scikit_learns_tree_of_the_same_depth(name):
    if name == "kdd" and not KDD.is_file():
        pytest.skip("the real streams are not part of the repository")
    load, splits = SETS[name]  # few rows to test on need many splits: one row is half a point
    x, y = load()
    gaps = []
    for seed in range(splits):
        a, b, c, d = train_test_split(x, y, test_size=0.3, random_state=seed)
        theirs = DecisionTreeClassifier(max_depth=5, random_state=0).fit(a, c)
        gaps.append(accuracy(learned(a, c, 5), b, d) - theirs.score(b, d))
    assert np.mean(gaps) > -0.01, gaps


def prequential(x, y, size, grace=200, depth=8, bins=64):
    """Right or wrong, row by row, of a tree that learns from batches of this size."""
    tree, held, right = Tree(), {}, []
    for start in range(0, len(y), size):
        some, labels = x[start : start + size], y[start : start + size]
        at = tree.leaves_of(some)
        if tree.classes:
            of_node = [tree.classes[tree.majority(n)] for n in range(len(tree.feature))]
            right += (np.array([of_node[leaf] for leaf in at]) == labels).tolist()
        numbers = np.array([tree.class_number(label) for label in labels.tolist()])
        for leaf in np.unique(at).tolist():
            of_leaf = held.setdefault(leaf, {})
            for c in np.unique(numbers[at == leaf]).tolist():
                mine = (at == leaf) & (numbers == c)
                tree.counts[leaf][c] += int(mine.sum())
                columns = {ROWS: np.zeros(mine.sum()), **dict(enumerate(some[mine].T))}
                for f, values in columns.items():
                    new = histogram(values, bins)
                    of_leaf[f, c] = merged(of_leaf.get((f, c), empty()), new, bins)
        grow(tree, held, x.shape[1], depth, "gini", bins, grace)
    return np.mean(right)


def test_on_a_drifting_stream_it_is_close_to_rivers_hoeffding_tree():
    # River's default leaves predict by naive Bayes; like ours, "mc" takes the majority class.
    sea = datasets.synth.SEA
    drifting = datasets.synth.ConceptDriftStream(
        sea(variant=0, seed=1), sea(variant=2, seed=1), position=15_000, width=200, seed=1
    )
    made = list(drifting.take(30_000))
    x = np.array([[row[0], row[1], row[2]] for row, _ in made])
    mine = prequential(x, np.array([label for _, label in made]), 1000)
    theirs = {}
    for leaves in ("mc", "nba"):
        hoeffding, right = river_tree.HoeffdingTreeClassifier(leaf_prediction=leaves), []
        for row, label in made:
            right.append(hoeffding.predict_one(row) == label)
            hoeffding.learn_one(row, label)
        theirs[leaves] = np.mean(right[1000:])
    assert mine > theirs["mc"]
    assert mine > theirs["nba"] - 0.03


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_first_split_is_scikit_learns_where_histograms_are_exact(criterion):
    random = np.random.default_rng(2)
    x = random.integers(0, 30, (500, 3)).astype(float)
    y = (x[:, 1] + random.normal(0, 4, 500) > 12).astype(int) + (x[:, 2] > 25)
    theirs = DecisionTreeClassifier(max_depth=1, criterion=criterion).fit(x, y).tree_
    tree = learned(x, y, 1, criterion=criterion)
    assert (tree.feature[0], tree.threshold[0]) == (theirs.feature[0], theirs.threshold[0])
    impurity = {"gini": gini, "entropy": entropy}[criterion]
    assert impurity(np.bincount(y)[:, None].astype(float))[0] == pytest.approx(theirs.impurity[0])


def test_rows_without_a_value_go_the_way_of_most():
    x = np.array([[1.0], [1.0], [1.0], [2.0]])
    tree = learned(x, np.array(["a", "a", "a", "b"]), 3)
    assert tree.leaves_of(np.array([[np.nan], [2.0]])).tolist() == [1, 2]
    assert tree.text(("f",)) == "f ≤ 1.5: a (3 of 3)\nf > 1.5: b (1 of 1)"
    mirrored = learned(3 - x, np.array(["b", "b", "b", "a"]), 3)
    assert mirrored.leaves_of(np.array([[np.nan], [1.0]])).tolist() == [2, 1]


def test_one_class_or_one_value_is_one_leaf():
    assert len(learned(np.array([[1.0], [2.0]]), np.array([0, 0]), 3).feature) == 1
    tree = learned(np.ones((4, 1)), np.array([1, 0, 1, 0]), 3)
    assert tree.text(("f",)) == "0 (2 of 4)"
    assert best_split({}, 2, 0, 0.0, "gini", 8) is None


def test_a_frequent_value_does_not_blur_those_beside_it():
    values = np.concatenate([np.zeros(500), np.random.default_rng(0).uniform(1, 2, 300)])
    labels = (values > 0).astype(int)
    tree = learned(values[:, None], labels, 1, bins=8)
    assert accuracy(tree, values[:, None], labels) == 1
