import xxhash

from tests.naive.hashing import choice_hash, scale


def candidates(key, workers, seed):
    h = choice_hash(key, 0, seed)
    yield scale(h, workers)
    number = 2
    while True:
        yield scale(xxhash.xxh64_intdigest(number.to_bytes(8, "little"), seed=h), workers)
        number += 1


def route(scheme, keys, workers, seed, source):
    loads = [0] * workers
    out = []
    for m, key in enumerate(keys, start=1):
        limit = (1 + scheme.epsilon) * m / workers
        worker = next(w for w in candidates(key, workers, seed) if loads[w] < limit)
        loads[worker] += 1
        out.append(worker)
    return out
