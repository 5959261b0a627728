def route(scheme, keys, workers, seed, source):
    """Without signals it is round robin for ever."""
    return [(seed + source + i) % workers for i in range(len(keys))]
