"""The Python examples of docs/kafka.md, run as they stand."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.kafka.conftest import ROOT

MINUTE_MS = 60_000
ORIGIN_MS = 1_700_000_040_000  # a full minute


def examples():
    text = (ROOT / "docs" / "kafka.md").read_text()
    return [part.split("```", 1)[0] for part in text.split("```python\n")[1:]]


def newest(broker, topic):
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "docs"})
    found = {}
    for partition in range(2):
        place = TopicPartition(topic, partition, 0)
        end = consumer.get_watermark_offsets(place, 20)[1]
        consumer.assign([place])
        read = 0
        while read < end:
            for message in consumer.consume(end - read, 20):
                found[message.key().decode()] = int(message.value())
                read += 1
    consumer.close()
    return found


def test_the_examples_of_the_docs_count_kafkas_words_headers_and_timestamps(
    spark, broker, topics, tmp_path
):
    topic, out_topic = topics
    minutes_topic = f"{out_topic}-minutes"
    broker.create(minutes_topic, 2, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": broker.address})
    words, minutes = Counter(), Counter()
    for number in range(200):
        sender, text = f"sender-{number % 3}", f"hot w{number % 7}"
        moment_ms = ORIGIN_MS + number % 2 * MINUTE_MS
        producer.produce(
            topic, text, f"user-{number}", timestamp=moment_ms, headers={"sender": sender}
        )
        words.update(text.split())
        minutes[moment_ms, sender] += 1
    assert producer.flush(30) == 0
    names = {
        "spark": spark,
        "brokers": broker.address,
        "topic": topic,
        "out_topic": out_topic,
        "minutes_topic": minutes_topic,
        "checkpoint": str(tmp_path / "words"),
        "minutes_checkpoint": str(tmp_path / "minutes"),
    }
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        for example in examples():
            exec(example, names)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert newest(broker, out_topic) == dict(words)
    expected = {}
    for (moment_ms, sender), count in minutes.items():
        minute = moment_ms // MINUTE_MS % 60
        expected[f"2023-11-14 22:{minute:02}:00 {sender}"] = count
    assert newest(broker, minutes_topic) == expected
