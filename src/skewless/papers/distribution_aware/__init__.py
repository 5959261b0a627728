"""Distribution-aware Key Grouping's tables and figures."""

from __future__ import annotations

from skewless.papers.distribution_aware import drift, on_spark, parameters, tables, variants
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "distribution-aware-table1": tables.table1,
    "distribution-aware-fig2": tables.figure2,
    "distribution-aware-fig3": tables.figure3,
    "distribution-aware-fig4": tables.figure4,
    "distribution-aware-fig5": tables.figure5,
    "distribution-aware-fig6": parameters.figure6,
    "distribution-aware-fig7": parameters.figure7,
    "distribution-aware-fig8": parameters.figure8,
    "distribution-aware-fig9": parameters.figure9,
    "distribution-aware-fig10": on_spark.figures10_12,
    "distribution-aware-fig13": variants.figure13,
    "distribution-aware-fig14": variants.figure14,
    "distribution-aware-drift": drift.drift,
}
