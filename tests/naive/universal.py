import numpy as np

PRIME = 2**61 - 1


def route(scheme, keys, workers, seed, source):
    a, b, c = np.random.default_rng(seed).integers(0, PRIME, (1, 3), dtype=np.uint64)[0].tolist()
    return [
        (((a * (key >> 32) + b * (key % 2**32) + c) % PRIME >> 30) * workers) >> 31 for key in keys
    ]
