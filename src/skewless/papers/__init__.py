"""The papers' tables and figures as functions that return data and checked claims, by paper."""

from __future__ import annotations

from skewless.papers import consistent, distribution_aware, dynamic, graded, partial, proactive
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    name: experiment
    for paper in (partial, dynamic, consistent, distribution_aware, proactive, graded)
    for name, experiment in paper.EXPERIMENTS.items()
}
