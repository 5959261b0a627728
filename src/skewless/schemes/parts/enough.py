"""How many choices are enough for the keys of a head, so that no worker gets too much.

Let p_1 ≥ p_2 ≥ … be the shares of the head's keys and p_tail the rest. A worker is missed by the d
distinct choices of one key with probability 1 − d/W, hence by those of the first h keys with
probability (1 − d/W)^h, and these reach an expected share b_h = 1 − (1 − d/W)^h of the workers,
B_h = W · b_h of them. Whatever the least loaded choice is, those workers must take in

- all messages of the first h keys: Σ_{i≤h} p_i;
- those of a later head key whose d distinct choices are all among them, of probability
  Π_{j<d} (B_h − j) / (W − j) (0 once a factor is);
- those of a tail key whose two distinct choices are, of probability b_h · (B_h − 1) / (W − 1).

No worker should have a share above 1/W + ε, so together no more than b_h · (1 + W·ε). d is the
smallest number, from max(2, ⌈p_1·W⌉) on, for which this holds for every prefix h of the head; if
none below W does, head keys choose among all workers. (The paper's own inequality is for choices
that may coincide, and asks for more of them.)
"""

from __future__ import annotations

import math

from skewless.compiled import compiled, inlined
from skewless.schemes.api import F64


@inlined
def total(values: F64) -> float:
    """What NumPy's `sum` gives; that takes a quarter of a second to compile."""
    added = 0.0
    for value in values:
        added += value
    return added


# Numba's `min` and `max` take a twentieth of a second to compile for every pair of types.
@inlined
def _or_none(value: float) -> float:
    return value if value > 0.0 else 0.0


@compiled
def are_enough(shares: F64, tail: float, choices: int, workers: int, epsilon: float) -> bool:
    """Whether the inequality holds for every prefix of the head, given by falling shares."""
    allowed_share = 1 + workers * epsilon
    later = total(shares)
    first = 0.0
    missed = 1.0
    for h in range(shares.size):
        first += shares[h]
        later -= shares[h]
        missed *= 1 - choices / workers
        reached = 1 - missed
        if reached * allowed_share >= 1:
            return True  # the left side never exceeds 1, and later prefixes reach more workers
        all_inside = 1.0
        for j in range(choices):
            all_inside *= _or_none(workers * reached - j) / (workers - j)
        both_inside = reached * _or_none(workers * reached - 1) / (workers - 1)
        if first + all_inside * later + both_inside * tail > reached * allowed_share:
            return False
    return True


@compiled
def fewest_choices(shares: F64, tail: float, workers: int, epsilon: float) -> int:
    """The smallest d for head keys of these falling shares; W stands for all workers."""
    if shares.size == 0 or workers <= 2:
        return 2 if workers > 2 else workers
    choices = math.ceil(shares[0] * workers)
    choices = choices if choices > 2 else 2
    while choices < workers and not are_enough(shares, tail, choices, workers, epsilon):
        choices += 1
    return choices if choices < workers else workers


@compiled
def sort_falling(values: F64) -> None:
    """Shell's sort: for the few hundred heads it is as fast as NumPy's, which compiles for 1 s."""
    gap = 1
    while gap < values.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, values.size):
            value, at = values[i], i
            while at >= gap and values[at - gap] < value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3
