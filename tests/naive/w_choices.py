import math

from tests.naive.d_choices import heads, same_reports
from tests.naive.hashing import choices
from tests.naive.space_saving import SpaceSaving

__all__ = ["route", "same_reports"]


def route(scheme, keys, workers, seed, source):
    theta = 1 / (5 * workers)
    summary = SpaceSaving(math.ceil(1.125 / (theta / 4)))
    loads, out = [0] * workers, []
    for key in keys:
        summary.add(key)
        if key in heads(summary, theta):
            worker = loads.index(min(loads))
        else:
            worker = min(choices(key, workers, min(2, workers), seed), key=lambda w: loads[w])
        loads[worker] += 1
        out.append(worker)
    return out
