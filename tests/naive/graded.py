import struct

import numpy as np

from tests.naive.hashing import choice_hash, choices, scale

COLUMNS = 1 << 16
PLACES = 1 << 14


class Own:
    """The workers of a key, and whose turn it is."""

    def __init__(self, tag, first):
        self.tag, self.workers, self.turn = tag, [first], 0

    def add(self, worker):
        if worker not in self.workers:
            self.workers.append(worker)

    def next_four(self, loads):
        four = [self.workers[(self.turn + i) % len(self.workers)] for i in range(4)]
        self.turn = self.turn + 4 if self.turn + 4 < len(self.workers) else 0
        return min(four, key=lambda worker: loads[worker])

    def next_below(self, loads, full):
        for _ in self.workers:
            worker = self.workers[self.turn]
            self.turn = (self.turn + 1) % len(self.workers)
            if loads[worker] < full:
                return worker
        return None


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
        if number % max(workers, 64) == 0:
            gain *= growth ** max(workers, 64)
            laggard = min(range(workers), key=lambda w: loads[w])
            total = mean * workers
            message = gain * (total / messages) if total else gain
            repaid = min(1.0, ballast / (0.05 * total)) if total else 0.0
            heat = max(message, max(mean, hottest) / 4)
            cold = scheme.target * heat
            wide = 0.35 * scheme.target * mean + (0.5 + 1.5 * repaid) * message
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
        slack = grade * wide
        full, low = mean + slack, mean - wide - slack
        order = choices(key, workers, workers, seed)
        assert order[0] == scale(hashed, workers)
        place, tag = hashed % PLACES, hashed >> 32 | 1
        known = place in moved and moved[place].tag == tag
        at = worker = moved[place].next_four(loads) if known else order[0]
        lagging = [w for w in order[1::-1] if max(loads[laggard], loads[w]) < low]
        lagging = [w for w in lagging if loads[w] < loads[at]]
        if loads[laggard] < low and hot:
            at, worker = None, laggard
        elif lagging:
            worker = lagging[0]
        elif loads[at] >= mean + max(slack, message):
            worker = moved[place].next_below(loads, full) if known else None
            if worker is None:
                worker = next((w for w in order if loads[w] < full), order[0])
        if worker != at:
            if not known:
                moved[place] = Own(tag, order[0])
            moved[place].add(worker)
        loads[worker] += added * (1 / rates[worker])
        out.append(worker)
    return out, loads


def same_reports(a, b):
    """Faded loads are no whole numbers: sums differ by rounding."""
    return np.allclose(a.loads, b.loads) and np.array_equal(a.sources, b.sources)


def logarithm(number):
    """Steps of single precision from 0, which grow like the logarithm."""
    return struct.unpack("i", struct.pack("f", number))[0]


def single(number):
    """Rounded to single precision."""
    return struct.unpack("f", struct.pack("f", number))[0]
