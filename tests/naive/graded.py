import struct

import numpy as np

from tests.naive.hashing import choice_hash, choices, scale

COLUMNS = 1 << 16
PLACES = 1 << 14


def route(scheme, keys, workers, seed, source):
    return trace(scheme, keys, [1.0] * len(keys), [1.0] * workers, workers, seed)[0]


def trace(scheme, keys, weights, rates, workers, seed):
    """Workers of the messages and the faded loads, by plain loops over whole orders of choices."""
    loads = [0.0] * workers
    rows = [{}, {}]
    gain, growth = 1.0, 2.0 ** (1 / (min(scheme.half_life, 1e7 / workers) * workers))
    mean, messages, ballast, hottest = 0.0, 0.0, 0.0, 0.0
    moved = {}
    out = []
    for number, (key, weight) in enumerate(zip(keys, weights, strict=True)):
        if number % workers == 0:
            gain *= growth**workers
            laggard = min(range(workers), key=lambda w: loads[w])
            total = mean * workers
            message = gain * (total / messages) if total else gain
            repaid = min(1.0, ballast / (0.05 * total)) if total else 0.0
            heat = max(message, max(mean, hottest) / 4)
            cold = scheme.target * heat
            wide = 0.35 * scheme.target * mean + (0.5 + 1.5 * repaid) * message
            level = mean + 0.5 * message
        hashed = choice_hash(key, 0, seed)
        columns = (hashed % COLUMNS, (hashed >> 16) % COLUMNS)
        held = [row.get(column, 0.0) for row, column in zip(rows, columns, strict=True)]
        added = gain * weight
        raised = single(min(held) + single(added))
        for row, column, old in zip(rows, columns, held, strict=True):
            row[column] = max(old, raised)
        count = max(0.0, single(min(held) - single(added)))
        mean += gain / workers * weight
        messages += gain
        hottest = max(hottest, count)
        each = 1 / max(1, logarithm(heat) - logarithm(cold))
        grade = min(1.0, max(0.0, (logarithm(heat) - logarithm(count)) * each))
        hot = grade == 0
        ballast += added if hot else 0.0
        full, low = mean + grade * wide, mean - (1 + grade) * wide
        order = choices(key, workers, workers, seed)
        assert order[0] == scale(hashed, workers)
        home, own = order[0], {order[0]}
        tag, *remembered = moved.get(hashed % PLACES, (None,))
        known = tag == hashed >> 16 & 0xFFFFFFFF
        if known:
            home, own = remembered
        near = sorted(own, key=lambda w: steps(home, w, workers))
        seen = sorted({steps(home, w, workers)[0] for w in own})
        seen = seen[:3] if workers <= 64 * 64 else [0]
        lower = [w for w in near if steps(home, w, workers)[0] in seen and loads[w] < level]
        at = worker = lower[0] if lower else home
        if loads[laggard] < low and hot:
            worker = laggard
        else:
            lagging = [w for w in order[1::-1] if loads[laggard] < low and loads[w] < low]
            lagging = [w for w in lagging if loads[w] < loads[at]]
            if lagging:
                worker = lagging[0]
            elif not lower and loads[at] >= full:
                own_first = by_word(own, home, workers) if known else []
                worker = next(w for w in own_first + order if loads[w] < full)
            if known or worker != at:
                moved[hashed % PLACES] = (hashed >> 16 & 0xFFFFFFFF, worker, own | {worker})
        loads[worker] += added * (1 / rates[worker])
        out.append(worker)
    return out, loads


def steps(home, worker, workers):
    """How far it is from one worker to another: word by word of 64, then bit by bit."""
    words = -(-workers // 64)
    return (worker // 64 - home // 64) % words, (worker % 64 - home % 64) % 64


def by_word(own, home, workers):
    """A key's workers word by word of 64, from that of its home on; within a word by number."""
    return sorted(own, key=lambda w: (steps(home, w, workers)[0], w))


def same_reports(a, b):
    """Faded loads are no whole numbers: sums differ by rounding."""
    return np.allclose(a.loads, b.loads) and np.array_equal(a.sources, b.sources)


def logarithm(number):
    """Steps of single precision from 0, which grow like the logarithm."""
    return struct.unpack("i", struct.pack("f", number))[0]


def single(number):
    """Rounded to single precision."""
    return struct.unpack("f", struct.pack("f", number))[0]
