"""Partial Key Grouping's tables and figures, and those of its sequel."""

from __future__ import annotations

from skewless.papers.partial import applications, balance, choices, choices_spark, on_spark, skew
from skewless.results import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "partial-table2": balance.table2,
    "partial-fig4": balance.figure4,
    "partial-fig5": balance.figure5,
    "partial-fig6": balance.figure6,
    "partial-fig7": skew.figure7,
    "partial-fig8": balance.figure8,
    "partial-fig9": skew.figure9,
    "partial-fig10": on_spark.figure10,
    "partial-table3": on_spark.table3,
    "partial-applications": applications.applications,
    "choices-workers": choices.workers,
    "choices-skew": choices.skew,
    "choices-spark": choices_spark.spark,
}
