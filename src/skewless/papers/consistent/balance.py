"""Consistent Grouping: figures 4–6 of the paper, imbalance and memory.

The paper's streams are not public, so shapes are checked, not digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from skewless import measures
from skewless.papers.streams import data_set
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.schemes.api import I64
from skewless.simulate.balance import BalanceResult, Case, balance_all
from skewless.streams import stream_of

WORKERS = (5, 10, 50, 100)
EPSILON = 0.01


def figure4(setting: Setting) -> Reproduction:
    """Figure 4: imbalance and memory by skew, over 10, 100 and 1,000 virtual workers."""
    messages = 500_000 if setting.quick else 5_000_000
    exponents = (0.5, 1.0, 1.5, 2.0) if setting.quick else tuple(np.arange(0.25, 2.01, 0.25))
    sizes = (10, 100, 1000)
    names = {
        "KG": "key",
        "PKG": "partial",
        "PoTC": "potc-message",
        "PoRC": "porc",
        "CH": "bounded-hash:points=1",
        "SG": "shuffle",
    }
    rows: list[dict[str, Any]] = []
    for z in exponents:
        stream = stream_of(f"zipf:z={z},keys=100000,messages={messages}")
        shares = _shares(stream, setting.seed)
        cases = [Case(spec, size) for size in sizes for spec in names.values()]
        results = balance_all(stream, cases, seed=setting.seed)
        labels = [label for _ in sizes for label in names]
        for label, result in zip(labels, results, strict=True):
            bound = measures.replication_bound(shares, result.workers, EPSILON)
            rows.append({"z": float(z)} | balance_row(label, result) | {"lower_bound": bound})
        setting.step(f"z = {z}")
    of = {(r["scheme"], r["workers"], r["z"]): r for r in rows}
    points = [(size, float(z)) for size in sizes for z in exponents]
    checks = [
        at_most(
            "PoRC: imbalance within ε of the mean load and one message (worst share of that bound)",
            max(
                of["PoRC", n, z]["imbalance"] * messages / (EPSILON * messages / n + 1)
                for n, z in points
            ),
            1.0,
        ),
        at_most(
            "PoRC needs less memory than CH everywhere (worst ratio)",
            _worst_ratio(of, points, "PoRC", "CH"),
            1.0,
        ),
        at_most(
            "PoRC needs less memory than SG everywhere (worst ratio)",
            _worst_ratio(of, points, "PoRC", "SG"),
            1.0,
        ),
        at_least(
            "KG and PKG are uneven at 1,000 virtual workers and z = 1.5 (least imbalance)",
            min(of[s, 1000, 1.5]["imbalance"] for s in ("KG", "PKG")),
            0.01,
        ),
        at_most(
            "PoTC and SG are even everywhere (most imbalance, messages)",
            max(of[s, n, z]["imbalance"] * messages for s in ("PoTC", "SG") for n, z in points),
            20,
        ),
    ]
    distance = [
        of["PoRC", n, z]["replication"] / of["PoRC", n, z]["lower_bound"] for n, z in points
    ]
    panels = [
        Panel(
            f"{size} virtual workers",
            "z",
            axis,
            [
                Line(s, exponents, [max(of[s, size, float(z)][axis], 1e-9) for z in exponents])
                for s in names
            ],
            log_y=True,
        )
        for axis in ("imbalance", "replication")
        for size in sizes
    ]
    notes = [
        "PoRC's replication is "
        f"{min(distance):.2f}–{max(distance):.2f} times the capacity bound Σ⌈p·n/(1+ε)⌉ ÷ keys.",
        "CH has one point per virtual worker on its ring, as virtual workers are its points.",
    ]
    return Reproduction(
        "consistent-fig4",
        "Consistent Grouping, figure 4: PoRC against the others over virtual workers",
        rows,
        checks,
        panels,
        notes,
    )


def _worst_ratio(
    of: Mapping[Any, Mapping[str, Any]], points: Sequence[tuple[int, float]], a: str, b: str
) -> float:
    return max(of[a, n, z]["replication"] / of[b, n, z]["replication"] for n, z in points)


def _shares(stream: Any, seed: int) -> I64:
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(seed)])
    return np.asarray(np.unique(keys, return_counts=True)[1])


def balance_row(label: str, result: BalanceResult) -> dict[str, Any]:
    """Imbalance and memory of one scheme."""
    return {
        "scheme": label,
        "workers": result.workers,
        "sources": result.sources,
        "messages": result.messages,
        "imbalance": result.imbalance,
        "replication": result.replication,
    }


def figure5(setting: Setting) -> Reproduction:
    """Figure 5: ε trades imbalance for memory, between key and shuffle; 10 workers, α = 10."""
    epsilons = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
    specs = {f"PoRC {e:g}": f"consistent:epsilon={e}" for e in epsilons}
    specs |= {"KG": "consistent:inner=key", "SG": "consistent:inner=shuffle"}
    results = balance_all(
        data_set("WP", setting), [Case(s, 10) for s in specs.values()], seed=setting.seed
    )
    setting.step("all ε")
    rows = [balance_row(label, r) for label, r in zip(specs, results, strict=True)]
    for row, epsilon in zip(rows, epsilons, strict=False):
        row["epsilon"] = epsilon
    imbalances = [row["imbalance"] for row in rows[: len(epsilons)]]
    replications = [row["replication"] for row in rows[: len(epsilons)]]
    key, shuffle = rows[-2], rows[-1]
    checks = [
        at_most(
            "ε = 0.01 keeps the imbalance within ε ÷ workers", imbalances[1], EPSILON / 10 + 1e-5
        ),
        _rising("imbalance rises with ε", imbalances),
        _rising("memory falls with ε", replications[::-1]),
        at_most("memory at ε = 0.001 is below shuffle's", replications[0], shuffle["replication"]),
        at_least("memory at ε = 10 is no less than key's", replications[-1], key["replication"]),
        at_most(
            "imbalance at ε = 10 is no more than key's", imbalances[-1], key["imbalance"] * 1.001
        ),
    ]
    panels = [
        Panel(
            f"WP, 10 workers: {axis}",
            "ε",
            axis,
            [
                Line("PoRC", epsilons, values),
                Line("KG", epsilons, [key[axis]] * len(epsilons)),
                Line("SG", epsilons, [max(shuffle[axis], 1e-9)] * len(epsilons)),
            ],
            log_x=True,
            log_y=True,
        )
        for axis, values in (("imbalance", imbalances), ("replication", replications))
    ]
    return Reproduction(
        "consistent-fig5",
        "Consistent Grouping, figure 5: ε trades imbalance for memory",
        rows,
        checks,
        panels,
        ["Workers are equal and nothing is signalled, so only ε acts."],
    )


def _rising(claim: str, values: Sequence[float]) -> Check:
    """Each value is no less than the one before, but for one part in a hundred."""
    holds = all(b >= a * 0.99 for a, b in pairwise(values))
    return Check(claim, "rising", " ≤ ".join(f"{v:.3g}" for v in values), holds)


def figure6(setting: Setting) -> Reproduction:
    """Figure 6: imbalance and memory of all schemes at W = 5 … 100."""
    names = {
        "KG": "key",
        "PKG": "partial",
        "PoTC": "potc-message",
        "CH": "bounded-hash",
        "SG": "shuffle",
        "CG": "consistent",
    }
    cases = [Case(spec, w) for w in WORKERS for spec in names.values()]
    results = balance_all(data_set("WP", setting), cases, seed=setting.seed)
    setting.step("all schemes")
    labels = [label for _ in WORKERS for label in names]
    rows = [balance_row(label, r) for label, r in zip(labels, results, strict=True)]
    of = {(r["scheme"], r["workers"]): r for r in rows}
    messages = results[0].messages

    def memory(scheme: str, workers: int) -> float:
        return float(of[scheme, workers]["replication"])

    checks = [
        at_most(
            "CG's imbalance is within ε of the mean load (worst share of that bound)",
            max(
                of["CG", w]["imbalance"] * messages / (EPSILON * messages / w + 10) for w in WORKERS
            ),
            1.0,
        ),
        at_most(
            "CG needs less memory than CH (worst ratio)",
            max(memory("CG", w) / memory("CH", w) for w in WORKERS),
            1.0,
        ),
        at_most(
            "CH needs less memory than SG and PoTC (worst ratio)",
            max(memory("CH", w) / min(memory("SG", w), memory("PoTC", w)) for w in WORKERS),
            1.0,
        ),
        at_most(
            "PKG is even at 5 and 10 workers (imbalance)",
            max(of["PKG", w]["imbalance"] for w in (5, 10)),
            1e-4,
        ),
        at_least("PKG breaks at 100 workers (imbalance)", of["PKG", 100]["imbalance"], 0.01),
        at_least(
            "KG is the most uneven (its least lead)",
            min(
                of["KG", w]["imbalance"] / max(of[s, w]["imbalance"] for s in names if s != "KG")
                for w in WORKERS
            ),
            1.0,
        ),
    ]
    panels = [
        Panel(
            f"WP: {axis}",
            "workers",
            axis,
            [Line(s, WORKERS, [max(of[s, w][axis], 1e-9) for w in WORKERS]) for s in names],
            kind="bars",
            log_y=True,
        )
        for axis in ("imbalance", "replication")
    ]
    notes = [
        "CG against CH at W = 5, 10, 50, 100: replication "
        + ", ".join(f"{memory('CG', w):.2f} against {memory('CH', w):.2f}" for w in WORKERS)
        + ". CH has 10 points per worker on its ring."
    ]
    return Reproduction(
        "consistent-fig6",
        "Consistent Grouping, figure 6: all schemes on equal workers",
        rows,
        checks,
        panels,
        notes,
    )
