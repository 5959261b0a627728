"""SpaceSaving with a dict and lists, by the same rule for whose counter is taken over."""


class SpaceSaving:
    def __init__(self, capacity, slack=0.125):
        self.capacity, self.slack = capacity, slack
        self.order = []  # the key of each counter
        self.count, self.error = {}, {}
        self.total = self.messages = self.lifts = 0.0
        self.limit = self.bound = 0.0
        self.candidates, self.turn = [], 0

    def add(self, key, weight=1.0):
        self.total += weight
        self.messages += 1
        if key not in self.count:
            start = 0.0
            if len(self.order) < self.capacity:
                self.order.append(key)
            else:
                counter = self._take()
                count = self.count.pop(self.order[counter])
                del self.error[self.order[counter]]
                start = self.bound = max(count, self.bound)
                self.lifts += start - count
                self.order[counter] = key
            self.count[key] = self.error[key] = start
        self.count[key] += weight

    def _take(self):
        while True:
            if not self.candidates:
                mean = self.total / self.messages
                budget = (self.slack * self.total - self.lifts) / self.capacity
                self.limit = min(self.count.values()) + max(0, min(self.slack * mean, budget))
                self.candidates = [
                    i for i, key in enumerate(self.order) if self.count[key] <= self.limit
                ]
            if self.turn >= len(self.candidates):
                self.turn = 0
            counter = self.candidates[self.turn]
            if self.count[self.order[counter]] <= self.limit:
                self.turn += 1
                return counter
            last = self.candidates.pop()
            if self.turn < len(self.candidates):
                self.candidates[self.turn] = last
