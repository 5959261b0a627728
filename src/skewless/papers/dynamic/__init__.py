"""Dynamic Key Grouping's figures."""

from __future__ import annotations

from skewless.papers.dynamic import figures, on_spark
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "dynamic-table1": figures.table1,
    "dynamic-table3": figures.table3,
    "dynamic-fig11": figures.figures10_11,
    "dynamic-fig11-spark": on_spark.figure11,
    "dynamic-fig12": figures.figures12_13,
    "dynamic-widths": figures.widths,
    "dynamic-rates": figures.rates,
}
