def route(scheme, keys, workers, seed, source):
    return [key % workers for key in keys]
