"""Consistent Grouping: figures 7–11 of the paper, queues through time.

The paper's streams are not public, so shapes are checked, not digits. It gives no time slot: here
it is 1,000 arrivals at α = 10 and 10 workers, and as many messages per worker and virtual worker
elsewhere (`_slot`). In all figures signals reach each source for itself, 100 mean arrival intervals
after the message that carries them was served.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skewless.papers.consistent.balance import WORKERS, balance_row
from skewless.papers.streams import data_set
from skewless.results import Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.simulate.queue.run import Cluster, QueueResult, queue
from skewless.streams import stream_of

LOAD = 0.8
LATE = 100  # mean arrival intervals until a signal is heard
CALM = 100  # messages at one worker: below, a queue counts as short


def capacities(strong: int, times: float, workers: int = 10, total: float | None = None) -> Any:
    """`strong` of the workers are so many times as strong as the rest; scaled to a total."""
    given = np.array([times] * strong + [1.0] * (workers - strong))
    return (given if total is None else given * total / given.sum()).tolist()


def _slot(virtual: int, workers: int = 10) -> int:
    """Arrivals per slot: as many messages per worker, and per virtual worker, as at α = 10."""
    return max(100, 1000 * workers // 10 * 10 // virtual)


def _timed(
    setting: Setting,
    scheme: str,
    stream: Any,
    speeds: Sequence[float],
    sources: int = 1,
    changes: Sequence[tuple[int, Sequence[float]]] = (),
    replication: bool = False,
) -> QueueResult:
    interval = 1.0 / (LOAD * sum(speeds))
    cluster = Cluster(len(speeds), LOAD, sources, speeds, changes, delay=LATE * interval)
    result = queue(stream, scheme, cluster, seed=setting.seed, replication=replication)
    setting.step(scheme)
    return result


def _queue_row(label: str, result: QueueResult) -> dict[str, Any]:
    late = result.series.late_utilisations()
    return {
        "scheme": label,
        "workers": result.balance.workers,
        "sources": result.balance.sources,
        "messages": result.balance.messages,
        "mean_latency": result.mean_latency,
        "p99_latency": result.p99_latency,
        "queue_at_the_end": int(result.series.queues[-1].max()),
        "max_queue": result.max_queue,
        "late_utilisation_spread": float(late.max() - late.min()),
        "control_messages": result.control_messages,
        "moves": _moves(result),
    }


def _moves(result: QueueResult) -> int:
    """Virtual workers moved, summed over the sources."""
    return sum(int(t.moves[0]) for t in result.tallies if hasattr(t, "moves"))


def _through_time(seen: Mapping[str, QueueResult]) -> list[Panel]:
    """Figures 7, 8, 10 and 11 plot max − min over the workers."""
    queues, latencies, shares = [], [], []
    for label, result in seen.items():
        series = result.series
        at = series.messages.tolist()
        spent, used = series.mean_latencies(), series.utilisations()
        queues.append(Line(label, at, np.maximum(series.queue_spreads(), 1).tolist()))
        gaps = np.maximum(spent.max(axis=1) - spent.min(axis=1), 1e-3)
        latencies.append(Line(label, at, gaps.tolist()))
        shares.append(Line(label, at, (used.max(axis=1) - used.min(axis=1)).tolist()))
    return [
        Panel("queue length", "messages", "max − min", queues, log_y=True),
        Panel("latency", "messages", "max − min", latencies, log_y=True),
        Panel("utilisation", "messages", "max − min", shares),
    ]


def figure7(setting: Setting) -> Reproduction:
    """Figure 7: key grouping and CG on 10 equal workers through time."""
    stream = data_set("WP", setting)
    seen = {
        label: _timed(setting, spec, stream, [1.0] * 10)
        for label, spec in (("KG", "key"), ("CG", "consistent"))
    }
    key, ours = seen["KG"], seen["CG"]
    rows = [_queue_row(label, r) for label, r in seen.items()]
    checks = [
        at_least("KG's longest queue grows with the stream (share)", _growth(key), 0.01),
        at_most("CG's longest queue at the end (messages)", rows[1]["queue_at_the_end"], CALM),
        at_least("KG's p99 latency is above CG's (ratio)", key.p99_latency / ours.p99_latency, 10),
        at_most("CG's utilisation spread, last quarter", rows[1]["late_utilisation_spread"], 0.1),
        at_least("KG's utilisation spread, last quarter", rows[0]["late_utilisation_spread"], 0.2),
    ]
    return Reproduction(
        "consistent-fig7",
        "Consistent Grouping, figure 7: equal workers through time",
        rows,
        checks,
        _through_time(seen),
    )


def _growth(result: QueueResult) -> float:
    """The longest queue at the end, as a share of all messages."""
    return float(result.series.queues[-1].max()) / result.balance.messages


def figure8(setting: Setting) -> Reproduction:
    """Figure 8: 3 of 10 workers are 5 times as strong; α = 10, slot = 1,000, 5 sources."""
    stream = data_set("WP", setting)
    specs = {
        "KG": "key",
        "SG": "shuffle",
        "CG": "consistent",
        "CG, settling": "consistent:settle=true",
    }
    seen = {
        label: _timed(setting, spec, stream, capacities(3, 5), 5, replication=True)
        for label, spec in specs.items()
    }
    rows = [
        _queue_row(label, r) | {"replication": r.balance.replication} for label, r in seen.items()
    ]
    of = {row["scheme"]: row for row in rows}
    checks = []
    for other in ("KG", "SG"):
        checks += [
            at_least(f"{other}'s longest queue grows with the stream", _growth(seen[other]), 0.01),
            at_least(
                f"CG's queue at the end is shorter than {other}'s (ratio)",
                of[other]["queue_at_the_end"] / max(1, of["CG"]["queue_at_the_end"]),
                10,
            ),
            at_least(
                f"CG's p99 latency is below {other}'s (ratio)",
                seen[other].p99_latency / seen["CG"].p99_latency,
                10,
            ),
        ]
    checks += [
        at_most("CG's utilisation spread, last quarter", of["CG"]["late_utilisation_spread"], 0.1),
        at_most(
            "settling moves less (ratio of moves)",
            of["CG, settling"]["moves"] / of["CG"]["moves"],
            0.5,
        ),
        at_most(
            "settling costs no latency (ratio of p99)",
            seen["CG, settling"].p99_latency / seen["CG"].p99_latency,
            2.0,
        ),
    ]
    notes = [
        "At α = 10 a weak worker is idle with 4 virtual workers and busy with 5, so CG never "
        f"stops moving: {of['CG']['moves']:,} moves, {of['CG, settling']['moves']:,} when settling."
    ]
    return Reproduction(
        "consistent-fig8",
        "Consistent Grouping, figure 8: unequal workers through time",
        rows,
        checks,
        _through_time(seen),
        notes,
    )


def figure9(setting: Setting) -> Reproduction:
    """Figure 9: 1, 10, 50 and 100 sources, W = 5 … 100, equal workers."""
    stream = data_set("WP", setting)
    counts = (1, 10, 50, 100)
    rows = []
    for workers in WORKERS:
        for sources in counts:
            spec = f"consistent:slot={_slot(10, workers)}"
            result = _timed(setting, spec, stream, [1.0] * workers, sources, replication=True)
            rows.append(
                balance_row("CG", result.balance)
                | {
                    "p99_latency": result.p99_latency,
                    "moves_per_source": _moves(result) / sources,
                    "slot": _slot(10, workers),
                }
            )
    of = {(r["workers"], r["sources"]): r for r in rows}

    def range_of(axis: str, workers: int) -> float:
        values = [of[workers, s][axis] for s in counts]
        return float(max(values) / min(values))

    checks = [
        at_most(
            f"{axis}: 1 … 100 sources stay within one order of magnitude (worst ratio)",
            max(range_of(axis, w) for w in WORKERS),
            10,
        )
        for axis in ("imbalance", "replication")
    ]
    checks.append(at_most("imbalance at worst", max(r["imbalance"] for r in rows), 0.01))
    panels = [
        Panel(
            f"WP: {axis}",
            "workers",
            axis,
            [Line(f"S = {s}", WORKERS, [of[w, s][axis] for w in WORKERS]) for s in counts],
            kind="bars",
            log_y=True,
        )
        for axis in ("imbalance", "replication")
    ]
    return Reproduction(
        "consistent-fig9",
        "Consistent Grouping, figure 9: more sources",
        rows,
        checks,
        panels,
        ["A slot lasts 100 arrivals per worker, so that each worker sees enough to judge by."],
    )


def figure10(setting: Setting) -> Reproduction:
    """Figure 10: α = 5 … 1,000 virtual workers per worker; 3 of 10 workers 5 times as strong."""
    stream = data_set("WP", setting)
    alphas = (5, 10, 20, 50, 100, 1000)
    seen = {}
    for alpha in alphas:
        spec = f"consistent:virtual={alpha},slot={_slot(alpha)}"
        seen[f"α = {alpha}"] = _timed(setting, spec, stream, capacities(3, 5))
    rows = [
        {"virtual": a, "slot": _slot(a)} | _queue_row(label, seen[label]) | _calm_row(seen[label])
        for a, label in zip(alphas, seen, strict=True)
    ]
    of = {row["virtual"]: row for row in rows}
    spread = {a: of[a]["late_utilisation_spread"] for a in alphas}
    checks = [
        at_least(
            "α = 1,000 takes longer than α = 10 and 100 until queues are short (ratio)",
            of[1000]["calm_from"] / max(of[10]["calm_from"], of[100]["calm_from"], 1),
            2,
        ),
        at_most(
            "α = 10 and 20 do alike (ratio of mean latencies)",
            max(of[10]["mean_latency"], of[20]["mean_latency"])
            / min(of[10]["mean_latency"], of[20]["mean_latency"]),
            3,
        ),
        at_least(
            "α = 5 holds queues worse than α = 100 once settled (ratio of the late queues)",
            of[5]["late_queue"] / of[100]["late_queue"],
            1.0,
        ),
        at_most("α = 100: utilisation spread, last quarter", spread[100], 0.1),
    ]
    best = min(alphas, key=lambda a: float(of[a]["mean_latency"]))
    notes = [
        "The paper finds α = 100 best; here the least mean latency over the whole run, with its "
        f"start, is at α = {best}: "
        + ", ".join(f"{a}: {of[a]['mean_latency']:.1f}" for a in alphas)
        + ". One virtual worker moves per signal, so many small ones take more slots to move.",
        "Longest queue on average over the last quarter: "
        + ", ".join(f"{a}: {of[a]['late_queue']:.1f}" for a in alphas)
        + ".",
    ]
    return Reproduction(
        "consistent-fig10",
        "Consistent Grouping, figure 10: the number of virtual workers",
        rows,
        checks,
        _through_time(seen),
        notes,
    )


def _calm_row(result: QueueResult) -> dict[str, Any]:
    longest = result.series.queues.max(axis=1)
    return {
        "calm_from": _calm_after(result, 0, result.balance.messages),
        "late_queue": float(longest[-longest.size // 4 :].mean()),
    }


def _calm_after(result: QueueResult, start: int, end: int) -> int:
    """Messages after `start` until no queue exceeds CALM any more before `end`."""
    messages, longest = result.series.messages, result.series.queues.max(axis=1)
    during = (messages > start) & (messages <= end)
    long = messages[during][longest[during] > CALM]
    return int(long[-1]) - start if long.size else 0


def figure11(setting: Setting) -> Reproduction:
    """Figure 11: {3, 5} → {5, 4} → {2, 10} strong workers, the same sum; time to recover."""
    phase = 600_000 if setting.quick else 6_000_000
    stream = stream_of(f"zipf:z=1.0,keys=26000,messages={3 * phase}")
    first = capacities(3, 5)
    changes = [
        (phase, capacities(5, 4, total=sum(first))),
        (2 * phase, capacities(2, 10, total=sum(first))),
    ]
    alphas = (5, 10, 20, 50, 100, 1000)
    specs = {"KG": "key", "SG": "shuffle"} | {
        f"α = {a}": f"consistent:virtual={a},slot={_slot(a)}" for a in alphas
    }
    specs["α = 10, settling"] = "consistent:settle=true"
    seen = {
        label: _timed(setting, spec, stream, first, 5, changes) for label, spec in specs.items()
    }
    rows = []
    for label, result in seen.items():
        recovery = {
            f"recovered_after_{n + 1}": _calm_after(result, n * phase, (n + 1) * phase)
            for n in range(3)
        }
        rows.append(_queue_row(label, result) | recovery)
    of = {row["scheme"]: row for row in rows}
    recovers = [
        at_most(
            f"α = {a}: recovered within 2/3 of a phase after each change (worst, messages)",
            max(of[f"α = {a}"][f"recovered_after_{n}"] for n in (2, 3)),
            2 * phase / 3,
        )
        for a in (10, 20, 50, 100)
    ]
    grows = [
        at_least(
            f"{other}'s longest queue at some time ÷ α = 100's",
            seen[other].max_queue / seen["α = 100"].max_queue,
            5,
        )
        for other in ("KG", "SG")
    ]
    notes = [
        f"Recovered: no queue above {CALM} messages until the next change. Messages it took "
        "after the first and the second change: "
        + "; ".join(
            f"{label}: {of[label]['recovered_after_2']:,} and {of[label]['recovered_after_3']:,}"
            for label in seen
        )
        + f" (a phase is {phase:,}; seen every {3 * phase // 512:,})."
    ]
    return Reproduction(
        "consistent-fig11",
        "Consistent Grouping, figure 11: capacities that change",
        rows,
        [*recovers, *grows],
        _through_time({k: seen[k] for k in ("KG", "SG", "α = 10", "α = 100")}),
        notes,
    )
