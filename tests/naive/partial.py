from tests.naive.hashing import choices


def route(scheme, keys, workers, seed, source):
    loads = [0] * workers
    out = []
    for key in keys:
        candidates = choices(key, workers, min(scheme.choices, workers), seed)
        worker = min(candidates, key=lambda w: loads[w])  # min keeps the first of equals
        loads[worker] += 1
        out.append(worker)
    return out
