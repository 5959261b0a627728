"""Graded choices against W-Choices on real streams: balance of the second half, copies of keys.

    python bench/frontier.py ../shared/data [--seeds 4] [--more name=SPEC …]

Unevenness is the worst over the seeds, replication the mean.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console

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


def judged(keys, scheme, workers, sources, seed):
    routed = route(keys, scheme, workers, sources=sources, seed=seed)
    second = np.bincount(routed[keys.size // 2 :], minlength=workers)
    counter = PairCounter(workers)
    counter.add(keys, routed)
    counted = counter.count()
    return second.max() / second.mean() - 1, counted.pairs / counted.keys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--more", nargs="*", default=[], metavar="NAME=SPEC")
    options = parser.parse_args()
    specs = {name: spec.format(options.folder) for name, spec in FILES.items()}
    specs |= dict(named.split("=", 1) for named in options.more)
    rows = []
    for name, spec in specs.items():
        keys = np.concatenate([chunk.keys for chunk in stream_of(spec).chunks()])
        for workers in (10, 50, 100):
            for sources in (1, 5):
                theirs, ours = (
                    over_seeds(keys, scheme, workers, sources, options.seeds)
                    for scheme in ("w-choices", "graded")
                )
                rows.append(
                    {
                        "stream": name,
                        "W": workers,
                        "sources": sources,
                        "w-choices": f"{theirs[0]:.2%}, {theirs[1]:.3f}",
                        "graded": f"{ours[0]:.2%}, {ours[1]:.3f}",
                        "share of excess": f"{(ours[1] - 1) / (theirs[1] - 1):.2f}",
                    }
                )
    Console(width=110).print(table("second half max/mean − 1, replication", rows))


def over_seeds(keys, scheme, workers, sources, seeds):
    runs = [judged(keys, scheme, workers, sources, seed) for seed in range(seeds)]
    return max(uneven for uneven, _ in runs), np.mean([copies for _, copies in runs])


if __name__ == "__main__":
    main()
