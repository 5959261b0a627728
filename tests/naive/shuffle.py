def route(scheme, keys, workers, seed, source):
    return [(seed + source + i) % workers for i in range(len(keys))]
