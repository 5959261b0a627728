"""The tests' campaign of kills, as big as one likes: is the newest count of every key exact?

python bench/kafka_kills.py [--kills 12] [--words 1000000] [--delay-ms 0.05]

Drivers (`skewless run`) are killed amid a batch and started again on the same checkpoint; meanwhile
the broker is killed once, and the topic grows from 2 to 5 partitions.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

TEST = "tests/kafka/test_kafka_faults.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--delay-ms", type=float, default=0.05)
    given = parser.parse_args()
    sizes = {
        "SKEWLESS_KAFKA_KILLS": str(given.kills),
        "SKEWLESS_KAFKA_WORDS": str(given.words),
        "SKEWLESS_KAFKA_DELAY_MS": str(given.delay_ms),
    }
    started_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", TEST],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **sizes},
    )
    print(f"{time.monotonic() - started_s:.0f} s")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
