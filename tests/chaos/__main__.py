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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos import cluster, damage, disks, drivers, jobs
from tests.chaos.outcome import Outcome, line, summary, table
from tests.chaos.streams import FOUND

LIMIT_S = 600  # a round that takes longer hangs
KINDS = ("cluster", "driver", "cluster", "cluster", "driver", "cluster", "driver", "cluster",
         "disk", "cluster", "driver", "two drivers", "cluster", "connect")  # fmt: skip
ON_CLUSTER = [
    *(("stream", what) for what in FOUND),
    *(("batch", what) for what in jobs.BATCHES),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*sorted(set(KINDS)), "files"])
    parser.add_argument("--faults", type=int, help="of a round on the cluster, at most")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    began, ends_s = datetime.now(UTC), time.monotonic() + asked.minutes * 60
    outcomes = [] if asked.only not in (None, "files") else files(asked.seed)
    rounds = Rounds(asked.seed, asked.faults)
    number = 0
    while time.monotonic() < ends_s and asked.only != "files":
        outcome = rounds.run(asked.only or KINDS[number % len(KINDS)], number)
        outcomes.append(outcome)
        said = {**outcome.faults, **{f"idle {k}": v for k, v in outcome.idle.items()}}
        took = f"{datetime.now(UTC):%H:%M:%S}"
        print(f"{took} {number}: {outcome.kind}: {said}: {'ok' if outcome.good else outcome}")
        sys.stdout.flush()
        number += 1
        if asked.json:
            report = {"seed": asked.seed, "minutes": asked.minutes, "began": f"{began:%F %R} UTC"}
            asked.json.write_text(json.dumps({**report, "rounds": summary(outcomes)}, indent=1))
    print(table(outcomes))
    rounds.stop(any(outcome.hangs for outcome in outcomes))
    print(line(outcomes))
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


class Rounds:
    """Rounds of a seed; kinds of work come in an order of the seed's, each in turn."""

    def __init__(self, seed: int, most_faults: int | None = None) -> None:
        self.seed, self._most_faults = seed, most_faults
        self._order = random.Random(seed).sample(ON_CLUSTER, len(ON_CLUSTER))
        self._counts: dict[str, int] = {}
        self._spark: Any = None

    def run(self, kind: str, number: int) -> Outcome:
        drawn = random.Random(self.seed * 1_000_003 + number)
        mine = self._counts[kind] = self._counts.get(kind, -1) + 1
        turn = self.seed + mine
        if kind in ("driver", "connect"):
            return drivers.killed_drivers(drawn, turn, connect=kind == "connect")
        if kind == "two drivers":
            return drivers.two_drivers(drawn, turn)
        if kind == "disk":
            try:
                return disks.bad_disk_under_a_stream(drawn, turn)
            except PermissionError:
                return Outcome("bad disk: none may be mounted here")
        self._spark = self._spark or cluster.start()
        work = self._order[mine % len(self._order)]
        return on_cluster(self._spark, drawn, turn, work, self._most_faults)

    def stop(self, hung: bool) -> None:
        if self._spark is not None and not hung:
            self._spark.stop()


def on_cluster(
    spark: Any,
    drawn: random.Random,
    number: int,
    work: tuple[str, str],
    most_faults: int | None = None,
) -> Outcome:
    """One round on the cluster, in a thread that is given up if it hangs."""
    form, what = work
    outcome = Outcome(f"{form}: {what}")
    run = jobs.stream_round if form == "stream" else jobs.batch_round

    def act() -> None:
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
                outcome.compare(*run(spark, drawn, number, what, Path(name), outcome))
        except Exception:
            outcome.broken.append(traceback.format_exc())

    thread = threading.Thread(target=act, daemon=True)
    with cluster.Hand(spark, random.Random(drawn.random()), outcome, most_faults):
        thread.start()
        thread.join(LIMIT_S)
    if thread.is_alive():
        outcome.hangs += 1
        spark.sparkContext.cancelAllJobs()
    return outcome


if __name__ == "__main__":
    sys.exit(main())
