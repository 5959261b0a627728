"""The papers' tables and figures as functions that return data and checked claims."""

from __future__ import annotations

from collections.abc import Callable

from skewless.papers import (
    choices,
    choices_spark,
    consistent,
    consistent_time,
    distribution_aware,
    distribution_aware_drift,
    distribution_aware_parameters,
    distribution_aware_spark,
    distribution_aware_variants,
    dynamic,
    partial,
)
from skewless.results import Reproduction, Setting

EXPERIMENTS: dict[str, Callable[[Setting], Reproduction]] = {
    "partial-table2": partial.table2,
    "partial-fig4": partial.figure4,
    "partial-fig5": partial.figure5,
    "partial-fig6": partial.figure6,
    "partial-fig7": partial.figure7,
    "partial-fig8": partial.figure8,
    "partial-fig9": partial.figure9,
    "dynamic-table1": dynamic.table1,
    "dynamic-table3": dynamic.table3,
    "dynamic-fig11": dynamic.figures10_11,
    "dynamic-fig12": dynamic.figures12_13,
    "dynamic-widths": dynamic.widths,
    "dynamic-rates": dynamic.rates,
    "consistent-fig4": consistent.figure4,
    "consistent-fig5": consistent.figure5,
    "consistent-fig6": consistent.figure6,
    "consistent-fig7": consistent_time.figure7,
    "consistent-fig8": consistent_time.figure8,
    "consistent-fig9": consistent_time.figure9,
    "consistent-fig10": consistent_time.figure10,
    "consistent-fig11": consistent_time.figure11,
    "distribution-aware-table1": distribution_aware.table1,
    "distribution-aware-fig2": distribution_aware.figure2,
    "distribution-aware-fig3": distribution_aware.figure3,
    "distribution-aware-fig4": distribution_aware.figure4,
    "distribution-aware-fig5": distribution_aware.figure5,
    "distribution-aware-fig6": distribution_aware_parameters.figure6,
    "distribution-aware-fig7": distribution_aware_parameters.figure7,
    "distribution-aware-fig8": distribution_aware_parameters.figure8,
    "distribution-aware-fig9": distribution_aware_parameters.figure9,
    "distribution-aware-fig10": distribution_aware_spark.figures10_12,
    "distribution-aware-fig13": distribution_aware_variants.figure13,
    "distribution-aware-fig14": distribution_aware_variants.figure14,
    "distribution-aware-drift": distribution_aware_drift.drift,
    "choices-workers": choices.workers,
    "choices-skew": choices.skew,
    "choices-spark": choices_spark.spark,
}
