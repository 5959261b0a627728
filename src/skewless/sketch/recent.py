"""Recent loads of keys: a Count-Min whose messages fade, with two counters per key.

Forward decay (Cormode et al., ICDE 2009): the caller lets later messages weigh more, so old ones
count less without being touched; everything is divided down before it overflows. Conservative
update (Estan and Varghese, 2002): only counters below the new estimate are raised, which halves
the error of rare keys. The two columns of a key come from 2 × 16 bits of one hash that the caller
has at hand.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined

F32 = npt.NDArray[np.float32]

COLUMNS = 1 << 16
LONGEST = 1e7  # half-life: counters of single precision tell messages apart up to 2²⁴ of them


def recent() -> F32:
    """Nothing seen: [2 · COLUMNS], row by row, for one address is found sooner than two."""
    return np.zeros(2 * COLUMNS, np.float32)


@inlined
def add(counts: F32, hashed: np.uint64, added: float) -> np.float32:
    """Count a message; the load of its key before it, one message of the same weight left out.

    So a key has a load above 0 only from its third message on.
    """
    mask = np.uint64(COLUMNS - 1)
    first = hashed & mask
    second = np.uint64(COLUMNS) + ((hashed >> np.uint64(16)) & mask)
    one, two, weight = counts[first], counts[second], np.float32(added)
    before = min(one, two)
    raised = before + weight
    counts[first] = max(one, raised)
    counts[second] = max(two, raised)
    return max(np.float32(0.0), before - weight)


@compiled
def divide_down(counts: F32, by: float) -> None:
    """Let all weigh less."""
    for column in range(2 * COLUMNS):
        counts[column] = np.float32(np.float64(counts[column]) / by)
