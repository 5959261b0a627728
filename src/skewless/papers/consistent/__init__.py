"""Consistent Grouping's figures."""

from __future__ import annotations

from skewless.papers.consistent import balance, on_spark, queues
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "consistent-fig4": balance.figure4,
    "consistent-fig5": balance.figure5,
    "consistent-fig6": balance.figure6,
    "consistent-fig7": queues.figure7,
    "consistent-fig8": queues.figure8,
    "consistent-fig9": queues.figure9,
    "consistent-fig10": queues.figure10,
    "consistent-fig11": queues.figure11,
    "consistent-fig12": on_spark.figure12,
    "consistent-fig13": on_spark.figure13,
}
