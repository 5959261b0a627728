"""The demo's last screen: top words, both schemes side by side, and a picture of the loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless import measures
from skewless.report.files import make_folder
from skewless.report.plots import save
from skewless.report.tables import print_loads, table
from skewless.results import Line, Panel


def show(
    console: Console,
    seen: Mapping[str, Sequence[Any]],
    best: Sequence[tuple[str, int]],
    folder: Path,
) -> None:
    """Print the tables and write the picture; `seen` maps a scheme to its batches' records."""
    import numpy as np

    loads = {s: np.sum([r.loads for r in records], axis=0) for s, records in seen.items()}
    console.print(table("Top ten words", [{"word": w, "count": c} for w, c in best]))
    rows = [
        {
            "scheme": scheme,
            # The first batch also starts Python workers and loads the kernels.
            "seconds from batch 2 on": round(sum(r.seconds for r in records[1:]), 1),
            "fullest worker ÷ mean": f"{loads[scheme].max() / loads[scheme].mean():.2f}",
            "imbalance": measures.imbalance(loads[scheme]),
            "workers per key and batch": round(
                sum(r.partials for r in records) / max(1, sum(r.keys or 0 for r in records)), 2
            ),
        }
        for scheme, records in seen.items()
    ]
    console.print(table("The same counts, and how even the work was", rows))
    most = max(float(each.max()) for each in loads.values())
    for scheme, each in loads.items():
        print_loads(console, scheme, each.tolist(), most)
    make_folder(folder)
    picture = folder / "demo.png"
    workers = list(range(len(next(iter(loads.values())))))
    lines = [Line(scheme, workers, each.tolist()) for scheme, each in loads.items()]
    even = sum(lines[0].y) / len(workers)
    panel = Panel("load per worker", "worker", "messages", lines, kind="bars", even=even)
    save([panel], "The same stream, two schemes", picture)
    console.print(f"Picture: {picture}", markup=False)
