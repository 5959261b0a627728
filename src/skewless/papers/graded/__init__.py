"""Graded choices against the schemes of the papers."""

from __future__ import annotations

from skewless.papers.graded import frontier, planned
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "frontier": frontier.frontier,
    "graded-planned": planned.planned,
}
