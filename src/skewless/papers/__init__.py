"""The papers' tables and figures as functions that return data and checked claims."""

from __future__ import annotations

from collections.abc import Callable

from skewless.papers import dynamic, partial
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
}
