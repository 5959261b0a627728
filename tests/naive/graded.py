import math
import struct

import numpy as np

from tests.naive.hashing import choice_hash, choices, scale

COLUMNS = 1 << 16


def route(scheme, keys, workers, seed, source):
    return trace(scheme, keys, [1.0] * len(keys), [1.0] * workers, workers, seed)[0]


def trace(scheme, keys, weights, rates, workers, seed):
    """Workers of the messages and the faded loads, by plain loops over whole orders of choices."""
    loads = [0.0] * workers
    rows = [{}, {}]
    seen_gain, seen_growth, seen_total = 1.0, 2.0 ** (1.0 / scheme.half_life), 0.0
    gain, growth = 1.0, 2.0 ** (1.0 / (12000.0 * workers))
    sent, messages = 0.0, 0.0
    hottest, laggard = 0.0, 0
    homes = {}
    out = []
    for number, (key, weight) in enumerate(zip(keys, weights, strict=True)):
        hashed = choice_hash(key, 0, seed)
        columns = (hashed % COLUMNS, (hashed >> 16) % COLUMNS)
        held = [single(row.get(column, 0.0)) for row, column in zip(rows, columns, strict=True)]
        added = seen_gain * weight
        for row, column, old in zip(rows, columns, held, strict=True):
            row[column] = max(old, single(min(held) + added))
        seen_total += added
        seen_gain *= seen_growth
        share = max(0.0, min(held) - added) / seen_total
        if number % workers == 0:
            laggard = min(range(workers), key=lambda w: loads[w])
            hottest *= 0.99
        hottest = max(hottest, share)
        sent += gain * weight
        messages += gain
        mean = sent / workers
        message = gain * (sent / messages)
        early = min(message * message * 1500 / mean, min(1, 10 * scheme.target) * mean)
        grace = max(message, early)
        heat = share / max(1 / workers, hottest / 2)
        grade = 1.0 if heat <= 1 / 200 else max(0.0, math.log(heat) / math.log(1 / 200))
        full = mean + grade * (0.4 * scheme.target * mean + grace)
        behind = mean * (1.0 - (0.8 if grade == 1 else 0.3) * scheme.target) - grace
        order = choices(key, workers, workers, seed)
        assert order[0] == scale(hashed, workers)
        home = homes.get(hashed % COLUMNS, order[0])
        if heat >= 0.5 and loads[laggard] < mean * (1.0 - 0.1 * scheme.target) - grace:
            worker = laggard
        else:
            fetched = []
            if loads[laggard] < behind:
                fetched = [w for w in reversed(order[:2]) if loads[w] < min(behind, loads[home])]
            stays = [home] if loads[home] < full else []
            free = [w for w in order if loads[w] < full]
            worker = (fetched + stays + free)[0]
            if worker != home:
                homes[hashed % COLUMNS] = worker
        loads[worker] += gain * weight / rates[worker]
        gain *= growth
        out.append(worker)
    return out, loads


def same_reports(a, b):
    """Faded loads are no whole numbers: sums differ by rounding."""
    return np.allclose(a.loads, b.loads) and np.array_equal(a.sources, b.sources)


def single(number):
    """Rounded to single precision."""
    return struct.unpack("f", struct.pack("f", number))[0]
