import math

from tests.naive.hashing import choices


def route(scheme, keys, workers, seed, source):
    return trace(scheme, keys, workers, seed)[0]


def trace(scheme, keys, workers, seed):
    """The workers of the messages, and every key's (space, count, width) at the end."""
    ideal = 100 / workers
    limit = ideal + math.sqrt(ideal)
    narrow = limit - scheme.hysteresis * (limit - ideal)
    most = min(workers, math.floor(100 / limit) + 1)
    teenage_places = round(scheme.keys * scheme.teenage)
    old_places = round(scheme.keys * scheme.old)
    baby_kept = scheme.keys - teenage_places - old_places
    spaces = {"baby": [], "teenage": [], "old": []}
    count, width = {}, {}
    loads, sent = [0.0] * workers, 0.0
    due, due_old = scheme.cycle_s, scheme.old_cycle_s
    out = []
    for number, key in enumerate(keys):
        seconds = number * (1 / scheme.rate)
        if seconds >= due:
            by_count(spaces["baby"], count)
            by_count(spaces["teenage"], count)
            for dropped in spaces["baby"][baby_kept:]:
                del count[dropped], width[dropped]
            del spaces["baby"][baby_kept:]
            promote(spaces["baby"], spaces["teenage"], teenage_places, count)
            due = (math.floor(seconds / scheme.cycle_s) + 1) * scheme.cycle_s
            if scheme.keeps < 1:
                count = {k: c * scheme.keeps for k, c in count.items()}
                loads = [load * scheme.keeps for load in loads]
                sent *= scheme.keeps
        if seconds >= due_old:
            by_count(spaces["teenage"], count)
            by_count(spaces["old"], count)
            promote(spaces["teenage"], spaces["old"], old_places, count)
            due_old = (math.floor(seconds / scheme.old_cycle_s) + 1) * scheme.old_cycle_s
        if key not in count:
            count[key], width[key] = 0, 2
            spaces["baby"].append(key)
        count[key] += 1
        home = choices(key, workers, 1, seed)[0]
        mine = [(home + i) % workers for i in range(width[key])]
        best = min(mine, key=lambda w: loads[w])
        warm = seconds > scheme.warm_up_s
        if loads[best] >= limit / 100 * sent and key in spaces["old"] and warm:
            following = (home + width[key]) % workers
            if width[key] < most and loads[following] < loads[best]:
                best = following
                width[key] += 1
        else:
            while len(mine) > 2 and sum(loads[w] < narrow / 100 * sent for w in mine) >= 2:
                mine.pop()
                width[key] -= 1
                best = min(mine, key=lambda w: loads[w])
        loads[best] += 1
        sent += 1
        out.append(best)
    return out, {k: (s, count[k], width[k]) for s, held in spaces.items() for k in held}


def by_count(items, count):
    items.sort(key=lambda k: -count[k])


def promote(source, target, places, count):
    while source and len(target) < places:
        target.append(source.pop(0))
    for _ in range(len(target)):
        if not source or count[target[-1]] > count[source[0]]:
            break
        first, last = source.pop(0), target.pop()
        target.insert(0, first)
        source.append(last)
