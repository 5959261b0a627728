"""Streams in which no key is hot: how even graded is, against W-Choices.

    python bench/uniform.py [--messages 1e5,1e6,1e7] [--seeds 3]

Keys are drawn with equal shares, from as many keys as there are messages, two thirds of that, a
tenth and a hundredth, for 10, 50 and 100 workers and 1 and 5 sources. Unevenness is max/mean − 1,
of the whole stream and of its second half alone, the mean over the seeds. Not a timing.
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console

import skewless
from skewless.report.tables import table

SCHEMES = ("graded", "w-choices")
TARGET, MORE = 0.01, 1.2  # what is kept: the target, or W-Choices' unevenness and a fifth more


def uneven(routes, workers):
    return float(np.bincount(routes, minlength=workers).max() * workers / routes.size - 1)


def measured(messages, keys, workers, sources, seeds):
    """Of both schemes: the unevenness of the whole and of the second half."""
    seen = []
    for seed in range(seeds):
        drawn = np.random.default_rng(seed).integers(0, keys, messages)
        for scheme in SCHEMES:
            routes = np.asarray(
                skewless.route(drawn, scheme, workers=workers, sources=sources, seed=seed)
            )
            seen += [uneven(routes, workers), uneven(routes[messages // 2 :], workers)]
    return np.reshape(seen, (seeds, 2, 2)).mean(axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", default="1e5,1e6,1e7")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    rows, kept = [], np.zeros(2, np.int64)
    for messages in (int(float(each)) for each in options.messages.split(",")):
        for keys in (messages, messages * 2 // 3, messages // 10, messages // 100):
            for workers, sources in ((w, s) for w in (10, 50, 100) for s in (1, 5)):
                ours, theirs = measured(messages, keys, workers, sources, options.seeds)
                kept += ours <= np.maximum(TARGET, MORE * theirs)
                row: dict[str, Any] = {"messages": messages, "keys": keys}
                row |= {"workers": workers, "sources": sources}
                for part, a, b in zip(("whole", "second half"), ours, theirs, strict=True):
                    row |= {part: f"{a:.2%}", f"{part}, W-Choices": f"{b:.2%}"}
                rows.append(row)
    console = Console(width=130)
    console.print(table("Uneven where no key is hot", rows))
    console.print(f"kept, of {len(rows)}: {kept[0]} over the whole, {kept[1]} over the second half")


if __name__ == "__main__":
    main()
