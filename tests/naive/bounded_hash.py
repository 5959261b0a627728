import xxhash

from tests.naive.hashing import choice_hash


def ring(workers, points, seed):
    places = []
    literal = (2 * seed + 1).to_bytes(4, "little")
    base = xxhash.xxh64_intdigest(literal, seed=42)
    for worker in range(workers):
        own = xxhash.xxh64_intdigest(worker.to_bytes(8, "little"), seed=base)
        for j in range(points):
            place = xxhash.xxh64_intdigest(j.to_bytes(8, "little"), seed=own)
            places.append((place, worker))
    return sorted(places)


def route(scheme, keys, workers, seed, source):
    places = ring(workers, scheme.points, seed)
    loads = [0] * workers
    out = []
    for m, key in enumerate(keys, start=1):
        limit = (1 + scheme.epsilon) * m / workers
        h = choice_hash(key, 0, seed)
        clockwise = [w for p, w in places if p >= h] + [w for p, w in places if p < h]
        worker = next(w for w in clockwise if loads[w] < limit)
        loads[worker] += 1
        out.append(worker)
    return out
