from collections import Counter

from tests.naive.hashing import choices


def route(scheme, keys, workers, seed, source):
    """Under the first plan keys are only counted."""
    return [choices(key, workers, 1, seed)[0] for key in keys]


def learned_route(keys, workers):
    loads = [0] * workers
    home = {}
    for key, count in sorted(Counter(keys).items(), key=lambda item: (-item[1], item[0])):
        home[key] = min(range(workers), key=lambda w: loads[w])
        loads[home[key]] += count
    return [home[key] for key in keys]
