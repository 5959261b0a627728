"""D-Choices on Spark: a fold that takes time per message, beside key and shuffle grouping.

Zipf-1.5 on 8 workers with 0.05 ms a message. The ideal time is the sum of the delays ÷ 8: 15 s in
the full size, so that starting a job hardly counts. Tolerance: D-Choices may take a tenth longer
than shuffle, the most even there is (a quarter in the quick size, where starting a job counts).
The two run in turn, three times each, and their medians are compared.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from skewless import folds
from skewless.results import Check, Line, Panel, Reproduction, Setting, at_least, at_most
from skewless.streams import stream_of

ROUNDS = (("key", "d-choices", "shuffle"), ("d-choices", "shuffle"), ("d-choices", "shuffle"))
WORKERS, DELAY_MS = 8, 0.05


def spark(setting: Setting) -> Reproduction:
    """The time that each scheme takes on Spark; the results are those of a plain groupBy."""
    messages = 320_000 if setting.quick else 2_400_000
    ideal_s = messages * DELAY_MS / 1000 / WORKERS
    stream = stream_of(f"zipf:z=1.5,keys=10000,messages={messages}")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks(setting.seed)])
    taken_s, exact = _times(keys.view(np.int64), setting)
    rows: list[dict[str, Any]] = [
        {"scheme": s, "workers": WORKERS, "wall_s": t, "ideal_s": ideal_s, "messages": messages}
        for s, t in taken_s.items()
    ]
    checks = [
        Check("every result equals a plain groupBy's", "True", str(exact), exact),
        at_most(
            "D-Choices' time ÷ shuffle's",
            taken_s["d-choices"] / taken_s["shuffle"],
            1.25 if setting.quick else 1.1,
        ),
        at_least("key grouping's time ÷ shuffle's", taken_s["key"] / taken_s["shuffle"], 2),
    ]
    panel = Panel(
        f"ideal: {ideal_s:.1f} s",
        "",
        "seconds",
        [Line("wall time", list(taken_s), list(taken_s.values()))],
        kind="bars",
    )
    return Reproduction(
        "choices-spark",
        f"D-Choices on Spark: Zipf-1.5, {WORKERS} workers, {DELAY_MS} ms a message",
        rows,
        checks,
        [panel],
    )


def _times(keys: Any, setting: Setting) -> tuple[dict[str, float], bool]:
    from skewless.spark import group
    from skewless.spark.lab.session import local_session

    taken_s: dict[str, list[float]] = {}
    exact = True
    grouped: dict[str, Any] = {}
    fold = folds.sleeping(folds.count(), DELAY_MS)
    with local_session(WORKERS) as session:
        df = session.createDataFrame(pa.table({"key": keys})).repartition(WORKERS).cache()
        expected = sorted(map(tuple, df.groupBy("key").count().collect()))
        for scheme in ROUNDS[0]:
            grouped[scheme] = group(df, "key", scheme, WORKERS, seed=setting.seed)
            grouped[scheme].fold(folds.count()).collect()  # starts the Python workers
        for number, schemes in enumerate(ROUNDS, 1):
            for scheme in schemes:
                start_s = time.perf_counter()
                counted = grouped[scheme].fold(fold).collect()
                taken_s.setdefault(scheme, []).append(time.perf_counter() - start_s)
                exact = exact and sorted(map(tuple, counted)) == expected
            setting.step(f"round {number}")
    return {scheme: median(each) for scheme, each in taken_s.items()}, exact
