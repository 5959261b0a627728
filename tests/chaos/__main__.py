"""`python -m tests.chaos --minutes 10 --seed 1 [--json FILE]`: faults until the time is up.

Rounds and their faults are drawn from the seed; when exactly a fault comes depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from tests.chaos import cluster, damage, drivers, jobs
from tests.chaos.outcome import Outcome, summary, table

LIMIT_S = 300  # a round that takes longer hangs
KINDS = ("cluster", "cluster", "cluster", "driver", "two drivers")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["cluster", "driver", "two drivers", "files"])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    ends_s = time.monotonic() + asked.minutes * 60
    outcomes = [] if asked.only not in (None, "files") else files(asked.seed)
    spark = None
    number = 0
    while time.monotonic() < ends_s and asked.only != "files":
        drawn = random.Random(asked.seed * 1_000_003 + number)
        kind = asked.only or KINDS[number % len(KINDS)]
        if kind == "driver":
            outcome = drivers.killed_drivers(drawn)
        elif kind == "two drivers":
            outcome = drivers.two_drivers(drawn)
        else:
            spark = spark or cluster.start()
            outcome = on_cluster(spark, drawn)
        outcomes.append(outcome)
        said = {**outcome.faults, **{f"idle {k}": v for k, v in outcome.idle.items()}}
        print(f"{number}: {outcome.kind}: {said}: {'ok' if outcome.good else outcome}", flush=True)
        number += 1
    print(table(outcomes))
    if asked.json:
        report = {"seed": asked.seed, "minutes": asked.minutes, "rounds": summary(outcomes)}
        asked.json.write_text(json.dumps(report, indent=1))
    if spark is not None and not any(outcome.hangs for outcome in outcomes):
        spark.stop()
    return 0 if all(outcome.good for outcome in outcomes) else 1


def files(seed: int, damages: int = 200) -> list[Outcome]:
    """What needs no Spark: damaged files, and bad disks where one may be mounted."""
    drawn = random.Random(seed)
    found = [damage.damaged_files(drawn, 25) for _ in range(damages // 25)]
    try:
        found.append(damage.bad_disks(drawn))
    except PermissionError:
        print("No disk may be mounted here: none was filled.")
    return found


def on_cluster(spark: Any, drawn: random.Random) -> Outcome:
    """One round on the cluster, in a thread that is given up if it hangs."""
    kind = drawn.choice(sorted(jobs.ROUNDS))
    outcome = Outcome(kind)

    def work() -> None:
        try:
            with tempfile.TemporaryDirectory() as name:
                outcome.compare(*jobs.ROUNDS[kind](spark, drawn, Path(name)))
        except Exception:
            outcome.broken.append(traceback.format_exc()[-2000:])

    thread = threading.Thread(target=work, daemon=True)
    with cluster.Hand(spark, random.Random(drawn.random()), outcome):
        thread.start()
        thread.join(LIMIT_S)
    if thread.is_alive():
        outcome.hangs += 1
        spark.sparkContext.cancelAllJobs()
    return outcome


if __name__ == "__main__":
    sys.exit(main())
