"""SpaceSaving: the heavy hitters of a stream in a fixed number of counters, O(1) per message.

Metwally, Agrawal, El Abbadi (ICDT 2005): a key without a counter takes over the one with the least
count c and inherits c as its possible error. Here a counter may be taken over while its count is
at most `limit` = least count + slack, the candidates in turn, until none is left and a rescan of
all counters sets a new limit.

- **Sieve** (filtered SpaceSaving: Homem and Carvalho, Information Sciences 180, 2010). A key
  without a counter counts in the cell of its hash, and takes a counter over only once the cell
  would exceed the limit. A key that loses its counter raises the cell of its own hash to its count.
  So no key without a counter came more often than its cell says, and the newcomer starts at the
  count s of its cell, or at c if that is more: counts are never too low. s − c is a *lift*. Most
  rare keys never leave the sieve, which is half of the work, and counts rise more slowly.
- **Slack** is SLACK of a mean message. While all messages weigh 1, candidates are the counters
  that share the least count: no lifts. The slack is also at most
  (SLACK · total − lifts so far) / capacity. A counter is lifted by no more than the slack between
  two rescans, so all lifts stay within SLACK · total.
- **Error.** The counts sum to total + lifts at most, so the limit, and every error and cell of the
  sieve, is at most (1 + SLACK) · total / capacity: `capacity_for(ε)` counters keep it ≤ ε · total,
  and hold all keys above that.
- **Cost.** Each step uses a candidate or drops one, and a rescan comes after the least count rose
  by the slack. With weight 1 that is once in `capacity` messages at most; with weights of one
  scale, or decay, 1/SLACK times as often: O(1) amortised. Only where messages grow ever lighter
  may the slack vanish and a new key cost O(capacity).
- **Merge** (`merge`). A key that one side does not hold counts there with that side's M, the count
  of its fullest cell. Of the union the largest counts stay. If e is the largest count left out,
  capacity + 1 keys have ≥ e; the parts of counts above M_a + M_b sum to
  ≤ (1 + SLACK) · N − capacity · (M_a + M_b), as counters below M_a lack at most the slack; together
  e ≤ (1 + SLACK) · N / capacity for N = total_a + total_b: the errors add up, no more.
- **Decay** is forward (Cormode et al., ICDE 2009): not the old counts shrink, the new messages
  weigh more, twice as much after `half_life` messages; all is divided down before it overflows.

Apache DataSketches, which counts distinct values for the folds, has such a sketch too. It cannot
serve here: a kernel would have to leave compiled code and make an object per message, and its items
sketch neither decays nor shares its arrays with a tally that pickles.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skewless.compiled import compiled, inlined
from skewless.compiled.bits import least_of
from skewless.errors import SkewlessError

U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]

Candidate = tuple[np.int64, np.int64, np.int64]  # a counter, the ring's entries, whose turn it is

SLACK = 0.125
SIEVE = 4  # cells of the index for each cell of the sieve
MOST_COUNTERS = 100_000_000  # some 100 bytes each, with the index and the sieve
GAIN_LIMIT = 2.0**100
_FREE = np.int32(-1)
_ONE = np.uint64(1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class SpaceSaving(NamedTuple):
    """Counters, and an open-addressing index of at least eight cells per counter."""

    keys: U64  # [capacity]
    counts: F64  # [capacity] over-estimates, in units of the first message's weight
    errors: F64  # [capacity] by how much at most
    cells: I32  # [a power of two] the counter of the key that hashes here, or −1
    ring: I32  # [capacity] the candidates
    ring_state: I64  # [3] entries of the ring, whose turn it is, counters up to the limit
    safe: U8  # [capacity] 1 where the count is above the limit: nobody may take the counter over
    used: I64  # [1] counters in use
    sieve: F64  # [a power of two] no key without a counter that hashes here came more often
    limit: F64  # [1] count up to which a counter may be taken over
    lifts: F64  # [1] by how much the counts may exceed the total
    total: F64  # [1] weight of all messages
    messages: F64  # [1] their number, in the same units
    gain: F64  # [1] what a message of weight 1 counts now
    growth: F64  # [1] by which the gain grows with each message; 1 without decay


class Summary(NamedTuple):
    """What a SpaceSaving knows, as of now: it merges and travels."""

    keys: U64  # [n] ascending
    counts: F64  # [n] over-estimates
    errors: F64  # [n] count − error ≤ truth ≤ count
    missing: F64  # [1] no other key came more often
    total: F64  # [1]
    capacity: I64  # [1] the most counters kept


def capacity_for(epsilon: float) -> int:
    """How many counters keep the error within that share of the total."""
    if not 0 < epsilon <= 1:
        raise SkewlessError(f"The error of a summary is a share in (0, 1], not {epsilon}.")
    return math.ceil((1 + SLACK) / epsilon)


def space_saving(capacity: int, half_life: float | None = None) -> SpaceSaving:
    """An empty summary; `half_life` is in messages, None for no decay."""
    if capacity < 1:
        raise SkewlessError(f"A summary needs at least 1 counter, not {capacity}.")
    if capacity > MOST_COUNTERS:
        raise SkewlessError(
            f"A summary of {capacity:,} counters, as so many workers or so small an error ask for, "
            f"takes too much memory: at most {MOST_COUNTERS:,} are kept."
        )
    if half_life is not None and not half_life >= 1:
        raise SkewlessError(f"A half-life is at least 1 message, not {half_life}.")
    cells = 1 << (8 * capacity - 1).bit_length()
    return SpaceSaving(
        np.zeros(capacity, np.uint64),
        np.zeros(capacity),
        np.zeros(capacity),
        np.full(cells, _FREE, np.int32),
        np.zeros(capacity, np.int32),
        np.array([0, 0, capacity]),
        np.zeros(capacity, np.uint8),
        np.zeros(1, np.int64),
        np.zeros(cells // SIEVE),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.zeros(1),
        np.ones(1),
        np.array([1.0 if half_life is None else 2.0 ** (1.0 / half_life)]),
    )


@inlined
def home_of(key: np.uint64, mask: np.uint64) -> np.uint64:
    """The index cell where the search for a key begins."""
    return ((key * _GOLDEN) >> np.uint64(20)) & mask


# Indices are unsigned throughout: for signed ones numba asks each time whether they are negative.
@inlined
def cell_of(cells: I32, keys: U64, key: np.uint64) -> np.uint64:
    """The index cell of the key, or the free one where it belongs."""
    mask = np.uint64(cells.size - 1)
    cell = home_of(key, mask)
    while cells[cell] >= 0 and keys[np.uint64(cells[cell])] != key:
        cell = (cell + _ONE) & mask
    return cell


@inlined
def _forget(cells: I32, keys: U64, slot: np.uint64) -> np.uint64:
    """Take a counter out of the index; the cell that is free now.

    Later cells of its run move back, so no gap hides a key.
    """
    mask = np.uint64(cells.size - 1)
    gap = home_of(keys[slot], mask)
    while cells[gap] != np.int32(slot):
        gap = (gap + _ONE) & mask
    cell = (gap + _ONE) & mask
    while cells[cell] >= 0:
        wanted = home_of(keys[np.uint64(cells[cell])], mask)
        if ((cell - wanted) & mask) >= ((cell - gap) & mask):
            cells[gap] = cells[cell]
            gap = cell
        cell = (cell + _ONE) & mask
    cells[gap] = _FREE
    return gap


@compiled
def _rescan(summary: Any) -> None:
    """Set the limit and list the counters up to it."""
    counts, capacity, total = summary.counts, summary.counts.size, summary.total[0]
    mean = summary.gain[0] * total / summary.messages[0]
    usual, allowed = SLACK * mean, (SLACK * total - summary.lifts[0]) / capacity
    slack = usual if usual < allowed else allowed
    limit = least_of(counts) + (slack if slack > 0.0 else 0.0)
    summary.limit[0] = limit
    left = np.int64(0)
    for slot in range(capacity):
        summary.ring[np.uint64(left)] = slot
        left += np.int64(counts[slot] <= limit)
        summary.safe[slot] = counts[slot] > limit
    summary.ring_state[0] = summary.ring_state[2] = left


# Helpers are handed what they need, not the summary: numba takes a tuple apart, array by array, for
# every call, and puts it together again inside, which is more code than theirs.


@inlined
def _candidate(ring: I32, counts: F64, limit: float, left: np.int64, turn: np.int64) -> Candidate:
    """A counter at most at the limit, the candidates in turn; there is one."""
    turn = turn if turn < left else np.int64(0)
    while counts[np.uint64(ring[np.uint64(turn)])] > limit:
        left -= 1
        ring[np.uint64(turn)] = ring[np.uint64(left)]
        turn = turn if turn < left else np.int64(0)
    return np.int64(ring[np.uint64(turn)]), left, turn + 1


@compiled
def renormalise(summary: Any) -> None:
    """Divide everything by the gain, so that a message counts 1 again."""
    gain = summary.gain[0]
    for slot in range(summary.counts.size):
        summary.counts[slot] /= gain
        summary.errors[slot] /= gain
        summary.safe[slot] = summary.counts[slot] > summary.limit[0] / gain
    summary.limit[0] /= gain
    summary.lifts[0] /= gain
    for place in range(summary.sieve.size):
        summary.sieve[place] /= gain
    summary.total[0] /= gain
    summary.messages[0] /= gain
    summary.gain[0] = 1.0


@inlined
def count_other(
    summary: Any, key: np.uint64, amount: float, left: np.int64, turn: np.int64
) -> Candidate:
    """Add to a key's counter, which it may not have yet; the sums include the message already.

    The counter, or −1 if it has none, the entries of the ring that are left, and whose turn it is:
    a loop carries them from one message to the next in registers.
    """
    cells, keys, counts, sieve = summary.cells, summary.keys, summary.counts, summary.sieve
    state, mask = summary.ring_state, np.uint64(summary.cells.size - 1)
    cell = cell_of(cells, keys, key)
    slot = np.int64(cells[cell])
    if slot < 0:
        slot = summary.used[0]
        if slot < counts.size:
            summary.used[0] = slot + 1
            state[2] = counts.size - slot - 1  # free counters are as good as candidates
        else:
            if state[2] <= 0:
                _rescan(summary)
                left, turn = state[0], np.int64(0)
            home, some = home_of(key, mask), np.uint64(sieve.size - 1)
            start = sieve[home & some]
            if start + amount <= summary.limit[0]:
                sieve[home & some] = start + amount
                return np.int64(-1), left, turn
            slot, left, turn = _candidate(summary.ring, counts, summary.limit[0], left, turn)
            taken = np.uint64(slot)
            least, place = counts[taken], home_of(keys[taken], some)
            sieve[place] = least if least > sieve[place] else sieve[place]
            gap = _forget(cells, keys, taken)
            # No other cell became free, so the key belongs there if that is sooner.
            cell = gap if ((gap - home) & mask) < ((cell - home) & mask) else cell
            start = least if least > start else start
            summary.lifts[0] += start - least
            counts[taken] = start
            summary.errors[taken] = start
            state[2] -= np.int64(start > summary.limit[0])
        keys[np.uint64(slot)] = key
        cells[cell] = slot
    at, limit = np.uint64(slot), summary.limit[0]
    before = counts[at]
    after = before + amount
    counts[at] = after
    summary.safe[at] = after > limit
    state[2] -= np.int64((before <= limit) & (after > limit))
    return slot, left, turn


@inlined
def count(summary: Any, key: np.uint64, weight: float) -> np.int64:
    """Count a message of that weight (≥ 0); the key's counter, or −1 if it has none."""
    if summary.gain[0] > GAIN_LIMIT:
        renormalise(summary)
    gain, state = summary.gain[0], summary.ring_state
    amount = weight * gain
    summary.messages[0] += gain
    summary.gain[0] = gain * summary.growth[0]
    summary.total[0] += amount
    slot, state[0], state[1] = count_other(summary, key, amount, state[0], state[1])
    return slot


@inlined
def add(summary: Any, key: np.uint64, weight: float) -> None:
    """Count a message of that weight (≥ 0)."""
    count(summary, key, weight)


@compiled
def add_all(summary: Any, keys: U64, weights: F64) -> None:
    """Count many messages."""
    for i in range(keys.size):
        add(summary, keys[i], weights[i])


@compiled
def estimate(summary: Any, key: np.uint64) -> float:
    """How often a key came at most, in messages of now."""
    slot = summary.cells[cell_of(summary.cells, summary.keys, key)]
    place = home_of(key, np.uint64(summary.sieve.size - 1))
    count = summary.counts[slot] if slot >= 0 else summary.sieve[place]
    return count / summary.gain[0]


def preload(summary: SpaceSaving, keys: U64, counts: F64, total: float) -> None:
    """Let an empty summary begin with these keys, as if they had come that often out of `total`."""
    growth = float(summary.growth[0])
    summary.growth[0] = 1.0  # they come at once, so none fades beside the next
    add_all(summary, keys, counts)
    summary.growth[0] = growth
    summary.total[0] = max(total, summary.total[0])
    summary.messages[0] = summary.total[0]
    summary.gain[0] = 1.0


def summarise(summary: SpaceSaving) -> Summary:
    """What is known now, ordered by key."""
    used, gain = int(summary.used[0]), float(summary.gain[0])
    order = np.argsort(summary.keys[:used])
    return Summary(
        summary.keys[:used][order],
        summary.counts[:used][order] / gain,
        summary.errors[:used][order] / gain,
        summary.sieve.max(keepdims=True) / gain,
        summary.total / gain,
        np.array([summary.counts.size]),
    )


def merge(a: Summary, b: Summary) -> Summary:
    """The summary of both streams; the errors add up."""
    keys = np.union1d(a.keys, b.keys)
    counts, errors = np.zeros(keys.size), np.zeros(keys.size)
    for side in (a, b):
        at = np.searchsorted(keys, side.keys)
        absent = np.full(keys.size, True)
        absent[at] = False
        counts[at] += side.counts
        errors[at] += side.errors
        counts[absent] += side.missing[0]
        errors[absent] += side.missing[0]
    capacity = np.maximum(a.capacity, b.capacity)
    missing = a.missing + b.missing
    if keys.size > capacity[0]:
        falling = np.argsort(-counts, kind="stable")
        missing = np.maximum(missing, counts[falling[capacity[0]]])
        kept = np.sort(falling[: capacity[0]])
        keys, counts, errors = keys[kept], counts[kept], errors[kept]
    return Summary(keys, counts, errors, missing, a.total + b.total, capacity)


def heavy_hitters(summary: Summary, theta: float) -> tuple[U64, F64]:
    """Keys whose estimate is at least that share of the total, most frequent first, and it."""
    falling = np.argsort(-summary.counts, kind="stable")
    heavy = falling[summary.counts[falling] >= theta * summary.total[0]]
    return summary.keys[heavy], summary.counts[heavy]
