from tests.naive.hashing import choices


def route(scheme, keys, workers, seed, source):
    loads = [0] * workers
    home = {}
    for key in keys:
        if key not in home:
            candidates = choices(key, workers, min(2, workers), seed)
            home[key] = min(candidates, key=lambda w: loads[w])
        loads[home[key]] += 1
    return [home[key] for key in keys]
