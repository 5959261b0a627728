"""Partial Key Grouping: figures 7 and 9, how much skew two choices bear and what more help."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skewless.papers.partial.balance import AXIS, BROKEN, WORKERS, row_of
from skewless.results import Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.simulate.balance import Case, balance_all


def figure7(setting: Setting) -> Reproduction:
    """Figure 7: skew z = 0.1 … 2.0, K = 1k … 1M."""
    messages = 2_000_000 if setting.quick else 10_000_000
    step = 0.4 if setting.quick else 0.1
    exponents = [round(z, 1) for z in np.arange(step, 2.01, step)]
    sizes = (1_000, 10_000, 100_000, 1_000_000)
    cases = [Case("partial", w, 5) for w in WORKERS]
    rows: list[dict[str, object]] = []
    value: dict[tuple[int, float, int], float] = {}
    for keys in sizes:
        for z in exponents:
            stream = f"zipf:z={z},keys={keys},messages={messages}"
            for result in balance_all(stream, cases, seed=setting.seed, replication=False):
                value[keys, z, result.workers] = result.average_imbalance
                rows.append({"keys": keys, "z": z} | row_of("ZF", "PKG", result))
            setting.step(f"K = {keys}, z = {z}")
    kept, broken = _by_theory(value, exponents, sizes)
    checks = [
        at_most("even wherever p1 < 0.8/W: the worst", max(kept), 100 / messages),
        at_least("uneven wherever p1 > 2.2/W: the best", min(broken), BROKEN),
        at_least("W = 10 breaks at z = 1.2, K = 1M", value[1_000_000, 1.2, 10], 1e-4),
        at_most("W = 5 holds at z = 1.2, K = 1M", value[1_000_000, 1.2, 5], 100 / messages),
    ]
    panels = [
        Panel(
            f"W = {w}",
            "z",
            AXIS,
            [Line(f"K = {k:,}", exponents, [value[k, z, w] for z in exponents]) for k in sizes],
            log_y=True,
        )
        for w in WORKERS
    ]
    notes = [
        "Between those bounds the hash's luck decides: with several hot keys on W = 5 workers the "
        "break comes at z = 1.2 or 1.3, by the number of keys."
    ]
    return Reproduction(
        "partial-fig7",
        "Partial Key Grouping, figure 7: where two choices break",
        rows,
        checks,
        panels,
        notes,
    )


def _by_theory(
    value: dict[tuple[int, float, int], float], exponents: Sequence[float], sizes: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Imbalances safely below and safely above the break; between, the hash's luck decides."""
    kept, broken = [], []
    for keys in sizes:
        ranks = np.arange(1, keys + 1)
        for z in exponents:
            p1 = 1 / (ranks**-z).sum()
            for workers in WORKERS:
                if p1 < 0.8 / workers:
                    kept.append(value[keys, z, workers])
                elif p1 > 2.2 / workers:
                    broken.append(value[keys, z, workers])
    return kept, broken


def figure9(setting: Setting) -> Reproduction:
    """Figure 9: more choices restore balance; z = 1.2, K = 1M."""
    messages = 2_000_000 if setting.quick else 10_000_000
    workers = (5, 10, 40, 50, 100)
    choices = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
    cases = [Case(f"partial:choices={d}", w, 5) for w in workers for d in choices if d <= w]
    stream = f"zipf:z=1.2,keys=1000000,messages={messages}"
    results = balance_all(stream, cases, seed=setting.seed, replication=False)
    setting.step("all choices")
    depth = [d for w in workers for d in choices if d <= w]
    rows = [{"choices": d} | row_of("ZF", "PKG", r) for d, r in zip(depth, results, strict=True)]
    value = {(r.workers, d): r.average_imbalance for d, r in zip(depth, results, strict=True)}
    held = 1e-5
    checks = [
        at_most("W = 5 is even from d = 2 with distinct choices (paper: 4)", value[5, 2], held),
        at_least("W = 10 is uneven at d = 2: times d = 3's", value[10, 2] / value[10, 3], 30),
        at_most("W = 10 is even from d = 3", value[10, 3], held),
        at_least("W = 40 is uneven at d = 5", value[40, 5], BROKEN),
        at_most("W = 40 is even from d = 8 (paper: 9)", value[40, 8], held),
        at_most("W = 50 is even from d = 10", value[50, 10], held),
        at_most("W = 100 is even with a few tens of choices: d = 20", value[100, 20], held),
    ]
    lines = [
        Line(f"W = {w}", ds := [d for d in choices if d <= w], [value[w, d] for d in ds])
        for w in workers
    ]
    panel = Panel("ZF, z = 1.2, K = 1M", "choices d", AXIS, lines, log_y=True)
    return Reproduction(
        "partial-fig9",
        "Partial Key Grouping, figure 9: more choices",
        rows,
        checks,
        [panel],
    )
