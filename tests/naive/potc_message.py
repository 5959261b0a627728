import xxhash

from tests.naive.hashing import choices


def route(scheme, keys, workers, seed, source):
    base = xxhash.xxh64_intdigest((2 * seed).to_bytes(4, "little"), seed=42)
    origin = xxhash.xxh64_intdigest(source.to_bytes(8, "little"), seed=base)
    loads = [0] * workers
    out = []
    for number in range(len(keys)):
        message = xxhash.xxh64_intdigest(number.to_bytes(8, "little"), seed=origin)
        pair = choices(message, workers, min(2, workers), seed)
        worker = min(pair, key=lambda w: loads[w])
        loads[worker] += 1
        out.append(worker)
    return out
