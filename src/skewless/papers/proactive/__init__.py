"""Proactive Online Shuffle Grouping's figures."""

from __future__ import annotations

from skewless.papers.proactive import figures, on_spark, parameters
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "proactive-fig4": figures.figure4,
    "proactive-fig5": parameters.figure5,
    "proactive-fig6": parameters.figure6,
    "proactive-fig7": parameters.figure7,
    "proactive-fig8": parameters.figure8,
    "proactive-fig9": parameters.figure9,
    "proactive-fig10": figures.figure10,
    "proactive-fig11": on_spark.figure11,
    "proactive-fig12": on_spark.figure12,
}
