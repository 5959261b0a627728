"""SpaceSaving with dicts and lists, by the same rule for whose counter is taken over."""


class SpaceSaving:
    def __init__(self, capacity, slack=0.125):
        self.capacity, self.slack = capacity, slack
        self.order = []  # the key of each counter
        self.count, self.error = {}, {}
        self.total = self.messages = self.lifts = 0.0
        self.limit = 0.0
        self.sieve, self.places = {}, max(1, 1 << (8 * capacity - 1).bit_length() >> 2)
        self.candidates, self.turn = [], 0

    def add(self, key, weight=1.0):
        self.total += weight
        self.messages += 1
        if key not in self.count:
            start = 0.0
            if len(self.order) < self.capacity:
                self.order.append(key)
            else:
                self._look_for_candidates()
                start = self.sieve.get(self.place(key), 0.0)
                if start + weight <= self.limit:
                    self.sieve[self.place(key)] = start + weight
                    return
                counter = self._take()
                before = self.order[counter]
                count = self.count.pop(before)
                del self.error[before]
                self.sieve[self.place(before)] = max(count, self.sieve.get(self.place(before), 0.0))
                start = max(count, start)
                self.lifts += start - count
                self.order[counter] = key
            self.count[key] = self.error[key] = start
        self.count[key] += weight

    def place(self, key):
        return (key * 0x9E3779B97F4A7C15 % 2**64 >> 20) % self.places

    def bound(self):
        return max(self.sieve.values(), default=0.0)

    def _look_for_candidates(self):
        if not self.candidates or all(c > self.limit for c in self.count.values()):
            mean = self.total / self.messages
            budget = (self.slack * self.total - self.lifts) / self.capacity
            self.limit = min(self.count.values()) + max(0, min(self.slack * mean, budget))
            self.candidates = [
                i for i, key in enumerate(self.order) if self.count[key] <= self.limit
            ]
            self.turn = 0

    def _take(self):
        while True:
            if self.turn >= len(self.candidates):
                self.turn = 0
            counter = self.candidates[self.turn]
            if self.count[self.order[counter]] <= self.limit:
                self.turn += 1
                return counter
            last = self.candidates.pop()
            if self.turn < len(self.candidates):
                self.candidates[self.turn] = last
