"""Where to cut a leaf: the feature and threshold that tell its classes apart best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from skewless.apps.decision_tree.histogram import F64, Histogram, merged_all, sums, uniform


class Split(NamedTuple):
    """Rows with feature ≤ threshold go left."""

    feature: int
    threshold: float
    gain: float
    left: F64  # [C] about how many rows of each class
    right: F64  # [C]


def gini(counts: F64) -> F64:
    """The chance that two rows are of different classes, per column of [C, n]."""
    shares = _shares(counts)
    return np.asarray(1 - (shares**2).sum(axis=0))


def entropy(counts: F64) -> F64:
    """The bits that a class has, per column of [C, n]."""
    shares = _shares(counts)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=0))


CRITERIA: dict[str, Callable[[F64], F64]] = {"gini": gini, "entropy": entropy}


def best_split(
    leaf: Mapping[tuple[int, int], Histogram],
    features: int,
    classes: int,
    rows: float,
    criterion: str,
    bins: int,
    least_side: float = 1.0,
) -> Split | None:
    """The split of most gain, or None if none has any.

    leaf: a histogram per (feature, class); rows: of the leaf, those without a value too
    least_side: rows that either side must have
    """
    best: Split | None = None
    impurity = CRITERIA[criterion]
    for feature in range(features):
        found = {c: leaf[feature, c] for c in range(classes) if (feature, c) in leaf}
        if not found:
            continue
        thresholds = candidates(merged_all(list(found.values()), bins), bins)
        left = np.zeros((classes, thresholds.size))
        totals = np.zeros((classes, 1))
        for c, held in found.items():
            left[c], totals[c] = sums(held, thresholds), held.total
        right = totals - left
        n, on_left, on_right = totals.sum(), left.sum(axis=0), right.sum(axis=0)
        usable = (on_left >= least_side) & (on_right >= least_side)
        if not usable.any():
            continue
        after = (on_left * impurity(left) + on_right * impurity(right)) / n
        gains = np.where(usable, (impurity(totals)[0] - after) * n / rows, -np.inf)
        at = int(gains.argmax())
        if gains[at] > (best.gain if best else 1e-12):
            best = Split(
                feature, float(thresholds[at]), float(gains[at]), left[:, at], right[:, at]
            )
    return best


def candidates(held: Histogram, parts: int) -> F64:
    """Thresholds to try: between all values where they are known, else at even quantiles."""
    if held.single.all():
        # Not x/2 + y/2 alone: between neighbouring floats it may be the larger one.
        lower, upper = held.points[:-1], held.points[1:]
        middle = lower / 2 + upper / 2
        return np.where(middle < upper, middle, lower)
    return np.unique(uniform(held, parts))


def _shares(counts: F64) -> F64:
    totals = counts.sum(axis=0)
    return np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
