"""Distribution-aware Key Grouping on Spark: figures 10 and 12, on a synthetic soccer match.

The paper's trace gives every reading of a sensor's place to four grids; the key is the grid's cell.
Its hottest cell has about a fifth of the messages, and O-apx is even up to k = 5. Here 22 players
roam around their places, and four of five readings are of things at rest in one place (spare balls,
substitutes), so that in each grid one cell has a fifth: an assumption, as the paper gives no more.

Throughput is that of a fold that sleeps for each message, on as many threads as workers. The first
half of the trace is learned from, the second is folded. Tolerances: where the hot cells fall under
modulo is luck, so the paper's 2 × is looked for in the mean over 50 places of rest (1.5 … 3); on
Spark, the gain must be what the loads of that one trace promise, within 25 % for the shuffle and
the start of a job, which cost the same under both.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skewless import folds, measures
from skewless.hashing import identities
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_most, between
from skewless.schemes import scheme_of
from skewless.simulate.sources import Estimate, Sources

INSTANCES = (4, 5, 6, 8, 10)
GRIDS = ((8, 13), (16, 25), (32, 50), (64, 100))  # rows and columns
PLAYERS, AT_REST = 22, 0.8
TRACES = 50
OURS = "distribution-aware"
I64 = npt.NDArray[np.int64]


def soccer(readings: int, seed: int) -> I64:
    """The cells of a match, four for each reading: grid · 10⁶ + row · 10³ + column."""
    random = np.random.default_rng([seed, 13])
    steps = -(-readings // PLAYERS)
    homes = random.uniform(0.05, 0.95, (PLAYERS, 2))
    places = np.empty((steps, PLAYERS, 2))
    now = homes.copy()
    for step in range(steps):
        now += 0.02 * (homes - now) + random.normal(0, 0.02, now.shape)
        places[step] = now
    seen = np.clip(places.reshape(-1, 2)[:readings], 0, 0.9999)
    seen[random.random(readings) < AT_REST] = random.uniform(0, 1, 2)
    cells = [
        grid * 10**6
        + (seen[:, 0] * rows).astype(np.int64) * 1000
        + (seen[:, 1] * columns).astype(np.int64)
        for grid, (rows, columns) in enumerate(GRIDS)
    ]
    return np.stack(cells, axis=1).reshape(-1)


def _loads(scheme: str, workers: int, cells: I64) -> npt.NDArray[Any]:
    """The loads on the second half of a trace, learned on the first."""
    keys, half = identities(cells), cells.size // 2
    spec = f"{scheme}:learn={half}" if scheme == OURS else scheme
    made = scheme_of(spec)
    system = Sources(made, workers, 1, 0, Estimate())
    if made.learns == "stream":
        system.route(keys[half:])
        system.adopt(system.learned_plan())
        routed = system.route(keys[half:])
    else:
        routed = system.route(keys)[half:]
    return np.bincount(routed, minlength=workers)


def figures10_12(setting: Setting) -> Reproduction:
    """Figure 10 by simulation over many traces, and figure 12 on Spark for one."""
    schemes = (OURS, "modulo", "o-apx")
    traces = [soccer(5_000, setting.seed * TRACES + i) for i in range(TRACES)]
    loads = {(s, k): [_loads(s, k, t) for t in traces] for s in schemes for k in INSTANCES}
    lambdas = {
        at: float(np.mean([measures.percent_imbalance(x) for x in same]))
        for at, same in loads.items()
    }
    gains = {
        k: float(
            np.mean(
                [m.max() / o.max() for m, o in zip(loads["modulo", k], loads[OURS, k], strict=True)]
            )
        )
        for k in INSTANCES
    }
    setting.step(f"{TRACES} traces simulated")
    cells = soccer(5_000 if setting.quick else 20_000, setting.seed)
    measured, exact = _throughputs(cells, 2.0 if setting.quick else 1.0, setting)
    rows: list[dict[str, Any]] = []
    checks: list[Check] = [
        between("the hottest cell's share (paper: about 1/5)", _hottest(cells), 0.17, 0.23),
        Check("every result equals a plain groupBy's", "True", str(exact), exact),
    ]
    for k in INSTANCES:
        rows.append(
            {
                "workers": k,
                **{f"imbalance_percent_{s}": lambdas[s, k] for s in schemes},
                "gain_simulated_mean": gains[k],
                "messages_per_s_ours": measured[OURS, k],
                "messages_per_s_modulo": measured["modulo", k],
                "gain_on_spark": measured[OURS, k] / measured["modulo", k],
                "gain_promised": float(
                    _loads("modulo", k, cells).max() / _loads(OURS, k, cells).max()
                ),
            }
        )
        checks += [
            at_most(
                f"k = {k}: ours above O-apx, points of mean λ (modulo: "
                f"{lambdas['modulo', k] - lambdas['o-apx', k]:.0f})",
                lambdas[OURS, k] - lambdas["o-apx", k],
                10,
            ),
            between(f"k = {k}: modulo's largest load ÷ ours, mean (paper: 2)", gains[k], 1.5, 3),
        ]
    seen, promised = (
        float(np.mean([r[name] for r in rows])) for name in ("gain_on_spark", "gain_promised")
    )
    checks.append(
        between(
            f"throughput on Spark, ours ÷ modulo, mean over k ({promised:.2f} by these loads)",
            seen,
            0.75 * promised,
            1.25 * promised,
        )
    )
    panels = [
        Panel(
            f"figure 10, mean of {TRACES} traces",
            "instances k",
            "λ (%)",
            [Line(s, INSTANCES, [lambdas[s, k] for k in INSTANCES]) for s in schemes],
        ),
        Panel(
            "figure 12, on Spark",
            "instances k",
            "messages/s",
            [Line(s, INSTANCES, [measured[s, k] for k in INSTANCES]) for s in (OURS, "modulo")],
        ),
    ]
    return Reproduction(
        "distribution-aware-fig10",
        "Distribution-aware Key Grouping, figures 10 and 12: a soccer match on Spark",
        rows,
        checks,
        panels,
        ["Modulo takes the remainder of the cell's hash; the paper's of the cell's number."],
    )


def _hottest(cells: I64) -> float:
    return float(np.unique(cells, return_counts=True)[1].max() / cells.size)


def _throughputs(
    cells: I64, delay_ms: float, setting: Setting
) -> tuple[dict[tuple[str, int], float], bool]:
    """Messages a second of the second half, after a warm run of each; were all results exact."""
    from skewless.spark import group, learn
    from skewless.spark.lab.session import local_session

    half = cells.size // 2
    fold = folds.sleeping(folds.count(), delay_ms)
    seen: dict[tuple[str, int], float] = {}
    exact = True
    with local_session(max(INSTANCES)) as spark:
        first = spark.createDataFrame(pa.table({"cell": cells[:half]}))
        rest = spark.createDataFrame(pa.table({"cell": cells[half:]})).repartition(4).cache()
        expected = sorted(map(tuple, rest.groupBy("cell").count().collect()))
        for k in INSTANCES:
            for scheme in ("modulo", OURS):
                way = learn(first, "cell", OURS, k, sample=1) if scheme == OURS else scheme
                grouped = group(rest, "cell", way, k)
                grouped.fold(folds.count()).collect()  # starts the Python workers
                start_s = time.perf_counter()
                counted = grouped.fold(fold).collect()
                seen[scheme, k] = half / (time.perf_counter() - start_s)
                exact = exact and sorted(map(tuple, counted)) == expected
            setting.step(f"k = {k} on Spark")
    return seen, exact
