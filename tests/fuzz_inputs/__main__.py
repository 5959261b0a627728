"""`python -m tests.fuzz_inputs --inputs 12000 --seed 1`: damaged inputs of every kind.

The process may take 2 GiB more than it has after start-up: an input that needs more is a defect.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.fuzz_inputs.files import fuzz_logs, fuzz_readers
from tests.fuzz_inputs.stored import fuzz_stored
from tests.fuzz_inputs.trial import Trials
from tests.fuzz_inputs.words import fuzz_commands, fuzz_specs

ALLOWANCE_BYTES = 2 << 30


def fuzz(inputs: int, seed: int) -> list[Trials]:
    """That many inputs, shared out to all kinds: cheap ones get more."""
    limit = psutil.Process().memory_info().vms + ALLOWANCE_BYTES
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    done = []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for share, kind in (
                (0.35, lambda d, n: fuzz_specs(d, n)),
                (0.25, lambda d, n: fuzz_readers(d, n, folder)),
                (0.25, lambda d, n: fuzz_stored(d, n, folder)),
                (0.10, lambda d, n: fuzz_logs(d, n, folder)),
                (0.05, lambda d, n: fuzz_commands(d, n, folder)),
            ):
                began_s = time.monotonic()
                trials = kind(random.Random(seed), round(inputs * share))
                done.append(trials)
                took_s = time.monotonic() - began_s
                print(f"{trials.kind}: {dict(trials.counts)}, {took_s:.0f} s", flush=True)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_inputs")
    parser.add_argument("--inputs", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    done = fuzz(asked.inputs, asked.seed)
    defects = [text for trials in done for text in trials.defects]
    print("\n".join(defects))
    total = sum(trials.counts.total() for trials in done)
    print(f"{total} inputs of seed {asked.seed}: {len(defects)} defects")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
