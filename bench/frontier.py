"""Graded choices against W-Choices: balance of the second half, copies of keys.

    python bench/frontier.py DATA [--more name=SPEC …]               real streams
    python bench/frontier.py --fresh judge                           streams made here, see fresh.py
    python bench/frontier.py --fresh further                         others, see further.py
    python bench/frontier.py --ablate [--seeds 2]                    which constants matter

Unevenness is the worst over the seeds, replication the mean. Constants are only ever chosen on the
half of the fresh streams that is called `choose`; `--ablate` looks at no other.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

import fresh
import further
from ablate import Outcome, ablated, excess_ratio, met
from skewless.report.tables import table
from skewless.simulate.replication import PairCounter
from skewless.simulate.sources import route
from skewless.streams import stream_of

FILES = {
    "congress_words": "words:path={}/congress_words.tsv.gz,column=2",
    "congress_hashtags": "tsv:path={}/congress_hashtags.tsv.gz,column=2",
    "stocknet_cashtags": "tsv:path={}/stocknet_cashtags.tsv.gz,column=2",
    "slashdot0902": "tsv:path={}/slashdot0902.tsv.gz,column=2",
    "kjv_words": "words:path={}/kjv_words.txt.gz",
    "kdd99": "tsv:path={}/kdd99_10pct.tsv.gz,column=1",
}
WORKERS = (10, 50, 100)
SOURCES = (1, 5)
MOST_ABLATED = 250_000  # messages of a stream, so that sixty settings take ten minutes
console = Console(width=110)


def judged(keys, scheme, workers, sources, seed):
    routed = route(keys, scheme, workers, sources=sources, seed=seed)
    second = np.bincount(routed[keys.size // 2 :], minlength=workers)
    counter = PairCounter(workers)
    counter.add(keys, routed)
    counted = counter.count()
    return second.max() / second.mean() - 1, counted.pairs / counted.keys


def outcome_of(scheme, streams, seeds) -> Outcome:
    outcome = {}
    for name, keys in streams:
        for workers in WORKERS:
            for sources in SOURCES:
                runs = [judged(keys, scheme, workers, sources, seed) for seed in range(seeds)]
                copies = float(np.mean([run[1] for run in runs]))
                outcome[name, workers, sources] = max(run[0] for run in runs), copies
    return outcome


def compare(streams, seeds):
    rows = []
    theirs, ours = {}, {}
    for stream in streams:  # one at a time: they are large
        theirs |= outcome_of("w-choices", [stream], seeds)
        ours |= outcome_of("graded", [stream], seeds)
    for case, (uneven, copies) in ours.items():
        rows.append(
            {
                "stream": case[0],
                "W": case[1],
                "sources": case[2],
                "w-choices": f"{theirs[case][0]:.2%}, {theirs[case][1]:.3f}",
                "graded": f"{uneven:.2%}, {copies:.3f}",
                "share of excess": f"{(copies - 1) / (theirs[case][1] - 1):.2f}",
            }
        )
    console.print(table("second half max/mean − 1, replication", rows))
    console.print(
        f"max/mean ≤ 1.01: graded in {met(ours)}, w-choices in {met(theirs)} of {len(ours)} cases; "
        f"excess copies, geometric mean of the share: {excess_ratio(ours, theirs):.4f}"
    )


def ablate(streams, seeds):
    rows = []
    for row in ablated(lambda scheme: outcome_of(scheme, streams, seeds)):
        rows.append(row)
        console.print(*row.values(), highlight=False)  # that is long to wait for a table
    console.print(table("each constant removed, halved, doubled", rows))


def read(folder: Path | None, more: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    specs = {name: spec.format(folder) for name, spec in FILES.items()} if folder else {}
    specs |= dict(named.split("=", 1) for named in more)
    for name, spec in specs.items():
        yield name, np.concatenate([chunk.keys for chunk in stream_of(spec).chunks()])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--more", nargs="*", default=[], metavar="NAME=SPEC")
    parser.add_argument("--fresh", choices=("choose", "judge", "both", "further"))
    parser.add_argument("--ablate", action="store_true")
    options = parser.parse_args()
    if options.ablate:
        streams = [(name, keys[:MOST_ABLATED]) for name, keys in fresh.streams("choose")]
        ablate(streams, options.seeds)
    elif options.fresh:
        part = options.fresh
        compare(further.streams() if part == "further" else fresh.streams(part), options.seeds)
    else:
        compare(read(options.folder, options.more), options.seeds)


if __name__ == "__main__":
    main()
