import math
import struct
from collections import Counter

import xxhash

from tests.naive.distribution_aware import same_reports  # noqa: F401  the laws ask the twin for it
from tests.naive.hashing import choice_hash, choices, scale


def route(scheme, keys, workers, seed, source):
    """While learning, key grouping."""
    return [choices(key, workers, 1, seed)[0] for key in keys]


def built(keys, workers, seed, target, rates):
    """The worker of each bucket, and the slots of each warm key, from exact counts."""
    counts = Counter(keys)
    warm = {k: c for k, c in counts.items() if c >= max(0.005 * (len(keys) / workers), 10)}
    rest = [0] * (10 * workers)
    for key, count in counts.items():
        rest[bucket_of(key, workers, seed)] += 0 if key in warm else count
    mean = len(keys) / workers
    limits = [(1 + target) * mean * rate for rate in rates]
    buckets = [b // 10 for b in range(10 * workers)]
    relieve(rest, buckets, limits)
    rooms = []
    for w in range(workers):
        cold = sum(rest[b] for b in range(10 * workers) if buckets[b] == w)
        rooms.append(max(limits[w] - cold, 0.0))
    homes = {key: buckets[bucket_of(key, workers, seed)] for key in warm}
    return buckets, poured(warm, homes, rooms, min(0.005, target / 2) * mean)


def relieve(rest, buckets, limits):
    """Move buckets from overfull workers to the emptiest, while that helps."""
    while True:
        over = [-limit for limit in limits]
        for bucket, worker in enumerate(buckets):
            over[worker] += rest[bucket]
        full, empty = over.index(max(over)), over.index(min(over))
        items = [b for b, w in enumerate(buckets) if w == full and rest[b] > 0]
        if over[full] <= 0 or not items:
            return
        best = min(items, key=lambda b: max(over[full] - rest[b], over[empty] + rest[b]))
        if max(over[full] - rest[best], over[empty] + rest[best]) >= over[full] * (1 - 1e-12):
            return
        buckets[best] = empty


def poured(warm, homes, rooms, slot):
    slots, homeless = {}, []
    for key in sorted(warm, key=lambda k: (warm[k], k)):
        if warm[key] <= rooms[homes[key]]:
            rooms[homes[key]] -= warm[key]
            slots[key] = [homes[key]]
        else:
            homeless.append(key)
    for key in homeless:
        widest = rooms.index(max(rooms))
        if warm[key] <= rooms[widest]:
            rooms[widest] -= warm[key]
            slots[key] = [widest]
            continue
        count = math.ceil(warm[key] / slot)
        size = warm[key] / count
        slots[key] = []
        others = [w for w in range(len(rooms)) if w != homes[key]]
        for worker in [homes[key], *sorted(others, key=lambda w: (-rooms[w], w))]:
            wanted = count - len(slots[key])
            taken = min(wanted, int(rooms[worker] / size))
            slots[key] += [worker] * taken
            if taken == wanted:
                rooms[worker] -= taken * size
                break
            rooms[worker] = 0.0
    return slots


def deployed(keys, buckets, slots, workers, seed, source=0):
    """Message i at time i."""
    out = []
    for number, key in enumerate(keys):
        own = slots.get(key, [buckets[bucket_of(key, workers, seed)]])
        out.append(own[scale(salt_hash(source, float(number)), len(own))])
    return out


def salt_hash(source, time):
    """Of a source's number and a time, as Spark hashes a long and a double after a literal."""
    hashed = 42
    for part in (struct.pack("<i", -1), struct.pack("<q", source), struct.pack("<d", time)):
        hashed = xxhash.xxh64_intdigest(part, seed=hashed)
    return hashed


def bucket_of(key, workers, seed):
    return scale(choice_hash(key, 0, seed), 10 * workers)
