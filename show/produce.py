"""A producer at a steady rate whose hot key changes every half minute; it keeps exact counts.

python -m show.produce HOST:PORT TOPIC [--rate 2000] [--seconds 120] [--share 0.4]
"""

from __future__ import annotations

import argparse
import threading
import time
from collections import Counter

import numpy as np
from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as Client

TICK_S = 0.02


class Producer:
    """Sends words, one to a message, which is also the message's key.

    rate: messages a second
    share: of the hot key; the other messages are spread over `words` words by Zipf's law
    moves_s: seconds after which another word is the hot one
    counts: of the words that the broker has confirmed
    """

    def __init__(
        self,
        address: str,
        topic: str,
        rate: float = 2000.0,
        share: float = 0.4,
        words: int = 1000,
        moves_s: float = 30.0,
        seed: int = 0,
    ) -> None:
        self.topic, self.rate, self.share, self.moves_s = topic, rate, share, moves_s
        self.counts: Counter[str] = Counter()
        self.failed = 0
        self._words = [f"word-{number:03}" for number in range(words)]
        weights = 1 / np.arange(1, words + 1)
        self._weights = weights / weights.sum()
        self._random = np.random.default_rng(seed)
        # Idempotent: a message that is sent again after a lost answer is stored once.
        settings = {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 10}
        # New partitions of the topic get messages within a second, not after five minutes.
        settings["topic.metadata.refresh.interval.ms"] = 1000
        self._client = Client({**settings, "message.timeout.ms": 120_000, "log_level": 2})

    def hot(self, elapsed_s: float) -> str:
        """The hot word of a moment."""
        return f"hot-{int(elapsed_s / self.moves_s)}"

    def words(self, count: int, elapsed_s: float = 0.0) -> list[str]:
        """That many words as they come at this moment."""
        numbers = self._random.choice(len(self._words), count, p=self._weights)
        hot = self._random.random(count) < self.share
        now = self.hot(elapsed_s)
        return [now if h else self._words[n] for h, n in zip(hot, numbers.tolist(), strict=True)]

    def send(self, words: list[str]) -> None:
        """Hand words to the client, waiting where its queue is full."""
        for word in words:
            while True:
                try:
                    self._client.produce(self.topic, word, word, on_delivery=self._confirmed)
                    break
                except BufferError:
                    self._client.poll(0.1)
        self._client.poll(0)

    def run(self, seconds: float, stop: threading.Event | None = None) -> None:
        """Send at the steady rate for so long, or until told to stop; then wait for the broker.

        What could not be sent in time, because the machine was busy, is sent as soon as possible.
        """
        stop = stop or threading.Event()
        start_s, sent = time.monotonic(), 0
        while not stop.is_set():
            elapsed_s = time.monotonic() - start_s
            due = int(min(elapsed_s, seconds) * self.rate) - sent
            if due:
                self.send(self.words(due, elapsed_s))
                sent += due
            if elapsed_s >= seconds:
                break
            stop.wait(TICK_S)
        self.flush()

    def flush(self) -> None:
        """Wait until the broker has confirmed everything, or it was given up (`failed`)."""
        self._client.flush()

    def _confirmed(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.counts[(message.key() or b"").decode()] += 1
        else:
            self.failed += 1


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("topic")
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--share", type=float, default=0.4)
    given = parser.parse_args()
    producer = Producer(given.address, given.topic, given.rate, given.share)
    producer.run(given.seconds)
    sent = producer.counts.total()
    print(f"{sent:,} messages sent, {len(producer.counts):,} words, {producer.failed} failed")
    for word, count in producer.counts.most_common(5):
        print(f"{count:>9,}  {word}")


if __name__ == "__main__":
    main()
