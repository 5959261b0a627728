"""Scheduler and workers of Proactive Online Shuffle Grouping as objects, state by state."""

from math import ceil, e, inf, log2

import numpy as np

PRIME = 2**61 - 1


def route(scheme, keys, workers, seed, source):
    """Without signals it is round robin for ever."""
    return [(seed + source + i) % workers for i in range(len(keys))]


class Hashes:
    def __init__(self, scheme, seed):
        self.columns = ceil(e / scheme.epsilon)
        draws = np.random.default_rng(seed).integers(
            0, PRIME, (ceil(log2(1 / scheme.delta)), 3), dtype=np.uint64
        )
        self.functions = [[int(x) for x in row] for row in draws]

    def cells(self, key):
        high, low = divmod(key, 2**32)
        for row, (a, b, c) in enumerate(self.functions):
            bits = (a * high + b * low + c) % PRIME // 2**30
            yield row, bits * self.columns // 2**31

    def all_cells(self):
        return [(r, c) for r in range(len(self.functions)) for c in range(self.columns)]


class Worker:
    def __init__(self, scheme, hashes):
        self.scheme, self.hashes = scheme, hashes
        self.worked = 0.0
        self.reset()

    def reset(self):
        self.state = "START"
        self.messages = 0
        self.F, self.V = {}, {}
        self.S = None

    def ratios(self):
        return {cell: self.V[cell] / self.F[cell] for cell in self.F}

    def serve(self, key, cost, now, request):
        """What it sends: (epoch, Δ) or None, and (F, V) or None."""
        for cell in self.hashes.cells(key):
            self.F[cell] = self.F.get(cell, 0) + 1
            self.V[cell] = self.V.get(cell, 0.0) + cost
        self.worked += cost
        self.messages += 1
        reply = None
        if request is not None:
            epoch, expected = request
            reply = (epoch, (now if self.scheme.backlog else self.worked) - expected)
        if self.messages % self.scheme.window:
            return reply, None
        if self.state == "START":
            self.state, self.S = "STABILIZING", self.ratios()
            return reply, None
        eta = self.eta()
        self.S = self.ratios()
        if eta > self.scheme.tolerance:
            return reply, None
        matrices = (self.F, self.V)
        self.reset()
        return reply, matrices

    def eta(self):
        now = self.ratios()
        error = total = 0.0
        for cell in self.hashes.all_cells():
            weight = self.F.get(cell, 0) if self.scheme.stability == "mass" else 1
            error += weight * abs(self.S.get(cell, 0) - now.get(cell, 0))
            total += weight * self.S.get(cell, 0)
        if not total:
            return inf if error else 0
        return error / total


class Scheduler:
    def __init__(self, scheme, hashes, workers, start):
        self.scheme, self.hashes, self.k = scheme, hashes, workers
        self.state, self.turn, self.epoch, self.to_ask = "ROUND ROBIN", start, 0, []
        self.C = [0.0] * workers
        self.matrices = {}
        self.replies = {}
        self.asked = [0.0] * workers
        self.sent_since = [[] for _ in range(workers)]
        self.unsynchronised = 0

    def allowed(self):
        """The workers that the next message may go to: several only if their Ĉ are equal."""
        if self.state == "ROUND ROBIN":
            return {self.turn}
        if self.state == "SEND ALL":
            return {self.to_ask[0]}
        least = min(self.C)
        return {w for w in range(self.k) if self.C[w] <= least + 1e-9 * max(1.0, abs(least))}

    def estimate(self, worker, key):
        F, V = self.matrices[worker]
        cell = min(self.hashes.cells(key), key=lambda cell: F.get(cell, 0))
        return V[cell] / F[cell] if cell in F else sum(V.values()) / sum(F.values())

    def send(self, key, worker, now):
        """The request that rides on the message, or None."""
        if self.state == "ROUND ROBIN":
            self.turn = (self.turn + 1) % self.k
            return None
        state, cost = self.state, self.estimate(worker, key)
        self.sent_since[worker].append((now, cost))
        self.C[worker] = later(self.scheme, self.C[worker], now, cost)
        self.unsynchronised += 1
        if state == "SEND ALL":
            self.to_ask.pop(0)
            self.asked[worker] = self.C[worker]
            self.sent_since[worker] = []
            if not self.to_ask:
                self.state = "WAIT ALL"
            return self.epoch, self.C[worker]
        if (
            self.scheme.backlog
            and state == "RUN"
            and self.unsynchronised >= max(1000, 200 * self.k)
        ):
            self.ask_all()
        return None

    def ask_all(self):
        self.state, self.to_ask, self.replies = "SEND ALL", list(range(self.k)), {}
        self.epoch += 1
        self.unsynchronised = 0

    def hear_reply(self, worker, epoch, delta):
        if epoch != self.epoch:
            return
        self.replies[worker] = delta
        if len(self.replies) < self.k:
            return
        for w, known in self.replies.items():
            self.C[w] = self.asked[w] + known
            for now, cost in self.sent_since[w]:
                self.C[w] = later(self.scheme, self.C[w], now, cost)
        self.state = "RUN"

    def hear_matrices(self, worker, matrices):
        self.matrices[worker] = matrices
        if self.state != "ROUND ROBIN" or len(self.matrices) == self.k:
            self.ask_all()


def later(scheme, end, now, cost):
    return (max(end, now) if scheme.backlog else end) + cost
