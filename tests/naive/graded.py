import math
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
    seen_gain, seen_growth, seen_total = 1.0, 2.0 ** (1.0 / scheme.half_life), 0.0
    gain, growth = 1.0, 2.0 ** (1.0 / (12000.0 * workers))
    sent, messages, ballast = 0.0, 0.0, 0.0
    hottest, laggard = 0.0, 0
    moved = {}
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
        heat = share / max(1 / workers, hottest / 2)
        sent += gain * weight
        messages += gain
        ballast += gain * weight if heat >= 0.5 else 0.0
        mean = sent / workers
        message = gain * (sent / messages)
        targets = 0.3 + (10.0 - 0.3) * min(1.0, ballast / sent / 0.05)
        early = max(message, message * message * 1000 / mean)
        grace = max(message / 2, min(early, min(1.0, targets * scheme.target) * mean))
        spare = max(0.0, ballast / sent - 0.4)
        grade = 1.0 if heat <= 1 / 200 else max(0.0, math.log(heat) / math.log(1 / 200))
        full = mean + grade * (0.3 * scheme.target * mean + grace)
        if heat < 0.5:
            full += 5.0 * max(spare - share * workers, spare / 2) * scheme.target * mean
        lag = scheme.target * (1.0 + 24 * spare)
        behind = mean * (1.0 - (0.8 if grade == 1 else 0.3) * lag) - grace
        order = choices(key, workers, workers, seed)
        assert order[0] == scale(hashed, workers)
        home, nth, width, used = order[0], 0, 1, {0}
        tag, *remembered = moved.get(hashed % PLACES, (None,))
        if tag == hashed >> 16 & 0xFFFFFFFF:
            home, nth, width, used = remembered
        if heat >= 0.5 and loads[laggard] < mean * (1.0 - 0.1 * lag) - grace:
            worker = laggard
        else:
            worker = home
            if loads[laggard] < behind and workers > 1:
                for n in (1, 0):
                    if loads[order[n]] < min(behind, loads[home]):
                        worker, nth, width = order[n], n, max(width, n + 1)
                        break
            if loads[worker] >= mean and (width > 1 or loads[worker] >= full):
                own = [(nth + i) % width for i in range(1, width)][:32]
                own = [n for n in own if n in used or n >= 64]
                beyond = [(nth + i) % workers for i in range(1, workers + 1)]
                stays = [nth] if loads[worker] < full else []
                below = [n for n in own if loads[order[n]] < mean]
                fits = [n for n in own + beyond if loads[order[n]] < full]
                chosen = (below + stays + fits)[0]
                if chosen != nth:
                    worker, nth, width = order[chosen], chosen, max(width, chosen + 1)
            if worker != home:
                moved[hashed % PLACES] = (
                    hashed >> 16 & 0xFFFFFFFF,
                    worker,
                    nth,
                    width,
                    used | {nth},
                )
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
