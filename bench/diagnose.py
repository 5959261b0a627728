"""Do predictions hold: `diagnose` against what `compare` measures, for sleeping folds on 8 workers.

    python bench/diagnose.py [DATA] [--messages 400000] [--ideal-s 10] [--rounds 3] [--only zipf]

For Zipf 0.8, 1.0 and 1.5, and with DATA (a folder of real streams) for six files of which a random
share of the lines is taken, every candidate is predicted and then run on Spark. What should be
seen: predicted time ÷ ideal within 15 % of what was measured, and the verdict's choice the fastest,
or within 5 % of it. The fullest worker ÷ mean, predicted and on Spark, does not depend on how busy
the machine is; times do, and want an idle one.
"""

import argparse
import gzip
import random
import tempfile
from pathlib import Path

from rich.console import Console

from skewless.diagnose.data import diagnose_stream
from skewless.report.tables import table
from skewless.spark import compare
from skewless.spark.lab.session import local_session

WORKERS = 8
ZIPFS = [f"zipf:z={z},keys=10000" for z in (0.8, 1.0, 1.5)]
FILES = {  # file -> stream, messages
    "congress_words.tsv.gz": ("words:path={},column=2", 8_406_730),
    "congress_hashtags.tsv.gz": ("tsv:path={},column=2", 2_788_426),
    "stocknet_cashtags.tsv.gz": ("tsv:path={},column=2", 254_670),
    "slashdot0902.tsv.gz": ("tsv:path={},column=2", 948_464),
    "kjv_words.txt.gz": ("words:path={}", 789_633),
    "kdd99_10pct.tsv.gz": ("tsv:path={},column=1", 494_021),
}


def streams(data, folder, messages):
    for zipf in ZIPFS:
        yield zipf, f"{zipf},messages={messages}"
    for name, (spec, whole) in FILES.items() if data else ():
        out = Path(folder) / name.removesuffix(".gz")
        share, chance = messages / whole, random.Random(1)
        with gzip.open(data / name, "rb") as file, out.open("wb") as kept:
            kept.writelines(line for line in file if chance.random() < share)
        yield name, spec.format(out)


def judged(spark, name, spec, options):
    found = diagnose_stream(spec, WORKERS)
    delay_ms = 1000 * options.ideal_s * WORKERS / found.messages
    schemes = [c.scheme for c in found.candidates]
    seen = compare(spark, spec, schemes, WORKERS, delay_ms=delay_ms, rounds=options.rounds)
    measured = {c.scheme: r.wall_s / r.ideal_s for c, r in zip(found.candidates, seen, strict=True)}
    fullest = {
        c.scheme: max(r.loads) * WORKERS / sum(r.loads)
        for c, r in zip(found.candidates, seen, strict=True)
    }
    fastest = min(measured.values())
    for candidate in found.candidates:
        taken = measured[candidate.scheme]
        chosen = candidate.scheme == found.choice
        yield {
            "stream": name,
            "candidate": candidate.scheme,
            "fullest predicted": round(candidate.max_over_mean, 3),
            "on Spark": round(fullest[candidate.scheme], 3),
            "time predicted": round(candidate.time_over_ideal, 2),
            "measured": round(taken, 2),
            "off by %": round(100 * (candidate.time_over_ideal / taken - 1), 1),
            "choice: slower than fastest by %": round(100 * (taken / fastest - 1), 1)
            if chosen
            else "",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--ideal-s", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="streams whose name begins so")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, local_session(WORKERS) as spark:
        for name, spec in streams(options.data, folder, options.messages):
            if name.startswith(options.only):
                rows += judged(spark, name, spec, options)
    console = Console(width=120)
    console.print(table("Time ÷ ideal, predicted and measured", rows))
    off = [abs(row["off by %"]) for row in rows]
    kept = sum(each <= 15 for each in off)
    console.print(f"within 15 %: {kept} of {len(off)}; the worst is off by {max(off)} %")


if __name__ == "__main__":
    main()
