"""The newest count of each key in a topic, as a consumer of the counts sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

WAIT_S = 20.0


@dataclass
class Counts:
    """What a topic of counts holds.

    newest: the last record of each key; as a compacted topic keeps it
    records: how many there were in all
    stepped_back: records with a smaller count than one before them, of the same key
    batches: the number of the micro-batch in each key's last record
    """

    newest: dict[str, int] = field(default_factory=dict)
    records: int = 0
    stepped_back: int = 0
    batches: dict[str, int] = field(default_factory=dict)


def read_counts(address: str, topic: str) -> Counts:
    """All records of the topic up to its present end."""
    settings = {"bootstrap.servers": address, "group.id": "skewless-show", "log_level": 2}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": False})
    try:
        partitions = consumer.list_topics(topic, WAIT_S).topics[topic].partitions
        places = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions]
        ends = {
            place.partition: consumer.get_watermark_offsets(place, WAIT_S)[1] for place in places
        }
        consumer.assign(places)
        found = Counts()
        left = {partition for partition, end in ends.items() if end}
        while left:
            message = consumer.poll(WAIT_S)
            if message is None:
                raise TimeoutError(f"no message of '{topic}' came within {WAIT_S} s")
            if message.error():
                raise KafkaException(message.error())
            if message.offset() < ends[message.partition()]:
                _take(message, found)
            if message.offset() >= ends[message.partition()] - 1:
                left.discard(message.partition())
        return found
    finally:
        consumer.close()


def _take(message, found: Counts) -> None:
    key, count = message.key().decode(), int(message.value())
    found.records += 1
    found.stepped_back += count < found.newest.get(key, 0)
    found.newest[key] = count
    found.batches[key] = int(dict(message.headers() or [])["batch"])
