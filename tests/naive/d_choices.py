import math

from tests.naive.hashing import choices
from tests.naive.space_saving import SpaceSaving


def heads(summary, theta):
    return {
        key: count / summary.total
        for key, count in summary.count.items()
        if count > theta * summary.total and count >= 4
    }


def holds(shares, tail, d, workers, epsilon):
    for h in range(1, len(shares) + 1):
        b = 1 - (1 - d / workers) ** h
        inside_all = math.prod(max(0, workers * b - j) / (workers - j) for j in range(d))
        inside_two = b * max(0, workers * b - 1) / (workers - 1)
        left = sum(shares[:h]) + inside_all * sum(shares[h:]) + inside_two * tail
        if left > b * (1 + workers * epsilon):
            return False
    return True


def fewest(shares, workers, epsilon):
    shares = sorted(shares, reverse=True)
    if not shares or workers <= 2:
        return min(2, workers)
    tail = max(0, 1 - sum(shares))
    for d in range(max(2, math.ceil(shares[0] * workers)), workers):
        if holds(shares, tail, d, workers, epsilon):
            return d
    return workers


def route(scheme, keys, workers, seed, source):
    theta = 1 / (5 * workers)
    summary = SpaceSaving(math.ceil(1.125 / (theta / 4)))
    loads, out = [0] * workers, []
    d, due = min(2, workers), 64
    for n, key in enumerate(keys, 1):
        summary.add(key)
        if n >= due:
            d = fewest(heads(summary, theta).values(), workers, scheme.epsilon)
            due = n + min(n, scheme.refresh)
        count = d if key in heads(summary, theta) else min(2, workers)
        worker = min(choices(key, workers, count, seed), key=lambda w: loads[w])
        loads[worker] += 1
        out.append(worker)
    return out


def same_reports(a, b):
    """Equal loads and totals, and for every key intervals of the truth that meet."""
    if (a.loads != b.loads).any() or a.sources != b.sources:
        return False
    return same_summaries(a.summary, b.summary)


def same_summaries(a, b):
    if abs(a.total[0] - b.total[0]) > 1e-6:
        return False
    for key in set(a.keys.tolist()) | set(b.keys.tolist()):
        (low, high), (other_low, other_high) = interval(a, key), interval(b, key)
        if low > other_high + 1e-6 or other_low > high + 1e-6:
            return False
    limit = 1.125 * a.total[0] / a.capacity[0] + 1e-6
    return all(s.errors.max(initial=0) <= limit and s.missing[0] <= limit for s in (a, b))


def interval(summary, key):
    held = dict(
        zip(
            summary.keys.tolist(),
            zip(summary.counts.tolist(), summary.errors.tolist(), strict=True),
            strict=True,
        )
    )
    if key not in held:
        return 0, float(summary.missing[0])
    count, error = held[key]
    return count - error, count
