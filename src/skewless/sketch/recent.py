"""Recent shares of keys: a Count-Min whose messages fade, with two counters per key.

Forward decay (Cormode et al., ICDE 2009): a message weighs `gain` times its weight, and the gain
doubles with every half-life, so old messages count less without being touched; everything is
divided down before it overflows. Conservative update (Estan and Varghese, 2002): only counters
below the new estimate are raised, which halves the error of rare keys. The two columns of a key
come from 2 × 16 bits of one hash that the caller has at hand.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]

COLUMNS = 1 << 16
LONGEST = 1e7  # half-life: counters of single precision tell messages apart up to 2²⁴ of them
_LARGEST_GAIN = 2.0**60


class Recent(NamedTuple):
    """Counters and the state of the decay."""

    counts: F32  # [2, COLUMNS]
    total: F64  # [1] of everything, faded
    gain: F64  # [1] of the next message
    growth: F64  # [1] of the gain, per message


def recent(half_life: float) -> Recent:
    """Nothing seen; a message counts half after `half_life` more."""
    return Recent(
        np.zeros((2, COLUMNS), np.float32),
        np.zeros(1),
        np.ones(1),
        np.array([2.0 ** (1.0 / half_life)]),
    )


@inlined
def add(sketch: Any, hashed: np.uint64, weight: float) -> float:
    """Count a message; the share of its key before it, one message of the same weight left out.

    So a key has a share above 0 only from its third message on.
    """
    counts, total, gain = sketch.counts, sketch.total, sketch.gain
    mask = np.uint64(COLUMNS - 1)
    first = np.int64(hashed & mask)
    second = np.int64((hashed >> np.uint64(16)) & mask)
    one, two = counts[0, first], counts[1, second]
    added = gain[0] * weight
    before = np.float64(min(one, two))
    raised = np.float32(before + added)
    counts[0, first] = max(one, raised)
    counts[1, second] = max(two, raised)
    total[0] += added
    gain[0] *= sketch.growth[0]
    if gain[0] > _LARGEST_GAIN:
        divide_down(sketch)
    return max(0.0, before - added) / total[0]


@compiled
def divide_down(sketch: Any) -> None:
    """Bring the gain back to 1."""
    by = sketch.gain[0]
    counts = sketch.counts
    for row in range(2):
        for column in range(COLUMNS):
            counts[row, column] = np.float32(np.float64(counts[row, column]) / by)
    sketch.total[0] /= by
    sketch.gain[0] = 1.0
