"""What a source of graded choices adds up, and the band around the mean for a round of messages.

A loop carries both in registers: sums change with every message, a round's facts with none of its
messages. LLVM would not know that writing to one array leaves the others as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skewless.compiled import inlined

# What `sums` holds: faded loads, but for the gain, which is what a message of weight 1 adds now.
MEAN, GAIN, MESSAGES, BALLAST, HOTTEST = range(5)
# What `band` holds for a round: the bits of a hot key's load, the grade of one bit, the band's half
# width, how far above the mean a worker is before a key leaves it, and by how much the gain grows
# from each round to the next.
HEAT_BITS, GRADE, WIDE, PATIENT, GROWTH = range(5)
# What `round` holds: the worker with the least load at its start, messages since, messages in all.
LAGGARD, SENT, LENGTH = range(3)
Sums = tuple[float, float, float, float]  # mean, messages, ballast, hottest
# Workers, the laggard, the band as above, the gain, and by how much a message raises the mean.
Round = tuple[np.int64, np.uint64, float, float, float, float, float, float]


@inlined
def bits_of(load: float) -> float:
    """A logarithm: the bits of a float are its exponent, and then its mantissa."""
    return np.float64(np.float32(load).view(np.int32))


@inlined
def sums_of(tally: Any) -> Sums:
    """What every message changes."""
    sums = tally.sums
    return sums[MEAN], sums[MESSAGES], sums[BALLAST], sums[HOTTEST]


@inlined
def keep_sums(tally: Any, sums: Sums) -> None:
    """Put it back."""
    kept = tally.sums
    kept[MEAN], kept[MESSAGES], kept[BALLAST], kept[HOTTEST] = sums


@inlined
def round_of(plan: Any, tally: Any) -> Round:
    """What stays as it is for a round."""
    band, laggard = tally.band, np.uint64(tally.round[LAGGARD])
    facts = band[HEAT_BITS], band[GRADE], band[WIDE], band[PATIENT]
    workers, gain = plan.workers[0], tally.sums[GAIN]
    return workers, laggard, *facts, gain, gain / workers
