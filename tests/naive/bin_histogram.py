"""The histogram of Ben-Haim and Tom-Tov as their paper writes it down, point after point."""

from __future__ import annotations


def update(bins, value, most):
    """Algorithm 1; a bin is [point, count, is it one value only]."""
    for one in bins:
        if one[0] == value:
            one[1] += 1
            return bins
    return shrink(sorted([*bins, [value, 1, True]]), most)


def merge(a, b, most):
    """Algorithm 2."""
    both = []
    for point, count, single in sorted([*a, *b]):
        if both and both[-1][0] == point:
            both[-1] = [point, both[-1][1] + count, both[-1][2] and single]
        else:
            both.append([point, count, single])
    return shrink(both, most)


def shrink(bins, most):
    bins = [list(one) for one in bins]
    while len(bins) > most:
        gaps = [bins[i + 1][0] - bins[i][0] for i in range(len(bins) - 1)]
        i = gaps.index(min(gaps))
        (p, m, _), (q, n, _) = bins[i], bins[i + 1]
        bins[i : i + 2] = [[(p * m + q * n) / (m + n), m + n, False]]
    return bins


def total_until(bins, b):
    """Algorithm 3; a bin of one value has all of its count at its point."""
    if b < bins[0][0]:
        return 0.0
    if b >= bins[-1][0]:
        return sum(m for _, m, _ in bins)
    i = max(k for k, (p, _, _) in enumerate(bins) if p <= b)
    (p, m, single), (q, n, next_single) = bins[i], bins[i + 1]
    found = sum(count for _, count, _ in bins[:i]) + (m if single else m / 2)
    m, n = (0 if single else m), (0 if next_single else n)
    at_b = m + (n - m) * (b - p) / (q - p)
    return found + (m + at_b) / 2 * (b - p) / (q - p)


def cut_at(bins, wanted):
    """Algorithm 4, for one cut: the least b up to which there are so many, by bisection."""
    low, high = bins[0][0], bins[-1][0]
    if total_until(bins, low) >= wanted:
        return low
    for _ in range(200):
        middle = (low + high) / 2
        if total_until(bins, middle) >= wanted:
            high = middle
        else:
            low = middle
    return high
