from collections import Counter

from tests.naive.d_choices import same_summaries
from tests.naive.hashing import choice_hash, choices, scale


def route(scheme, keys, workers, seed, source):
    """While learning, key grouping."""
    return [choices(key, workers, 1, seed)[0] for key in keys]


def same_reports(a, b):
    return (
        abs(a.buckets - b.buckets).max() < 1e-6
        and a.messages == b.messages
        and a.sources == b.sources
        and same_summaries(a.summary, b.summary)
    )


def built(keys, workers, seed, theta, mu):
    """Heads and buckets of the plan learned from exact counts: two dicts to workers."""
    counts = Counter(keys)
    heavy = {k: c for k, c in counts.items() if c >= theta * len(keys)}
    buckets = Counter(dict.fromkeys(range(workers * mu), 0))
    for key, count in counts.items():
        buckets[bucket_of(key, workers, seed, mu)] += 0 if key in heavy else count
    items = [("head", k, heavy[k]) for k in sorted(heavy)]
    items += [("bucket", b, buckets[b]) for b in range(workers * mu)]
    loads = [0] * workers
    homes = {}
    for kind, name, weight in sorted(items, key=lambda item: -item[2]):
        worker = loads.index(min(loads))
        loads[worker] += weight
        homes[kind, name] = worker
    return homes


def deployed(keys, homes, workers, seed, mu):
    return [
        homes.get(("head", key), homes["bucket", bucket_of(key, workers, seed, mu)]) for key in keys
    ]


def bucket_of(key, workers, seed, mu):
    return scale(choice_hash(key, 0, seed), workers * mu)
