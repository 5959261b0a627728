"""Latency from a message's arrival in Kafka until its count is out, while the hot key moves.

python -m bench.kafka_latency [--seconds 60] [--after 30] [--rate 600] [--load 0.8] [--plot FILE]

One scheme after the other, on a broker and a Spark of this machine: a producer at a steady rate,
workers that sleep for each message (load = rate · delay ÷ workers), micro-batches as fast as they
go. The count of a message is out when the micro-batch that counted it has been sent. The producer
goes on for a while after the messages that are measured, so that these see a steady load to their
end. What a scheme has not counted by then is as old as it is then: percentiles that fall among
these are lower bounds, marked ≥, and the plot leaves them out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition
from show.broker import Broker
from show.produce import Producer

from skewless import folds
from skewless.report.plots import save
from skewless.results import Line, Panel
from skewless.spark import group
from skewless.spark.lab.connector import connector_jars
from skewless.spark.lab.kafka import Kafka, judged, keys_of, read, with_short_errors, write
from skewless.spark.lab.session import local_session

PARTITIONS = 4
SHARE = 0.4
WARM = 400


def arrivals(address, topic):
    """The times at which the messages of each partition came, in seconds."""
    settings = {"bootstrap.servers": address, "group.id": "latency", "log_level": 2}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    times = {}
    for number in range(PARTITIONS):
        place = TopicPartition(topic, number, 0)
        end = consumer.get_watermark_offsets(place, 20)[1]
        consumer.assign([place])
        came = []
        while len(came) < end:
            came += [message.timestamp()[1] / 1000 for message in consumer.consume(1000, 5)]
        times[number] = np.array(came)
    consumer.close()
    return times


def ends_of(checkpoint, topic, batch):
    """The first offset of each partition that this batch did not read."""
    last_line = (checkpoint / "offsets" / str(batch)).read_text().splitlines()[-1]
    return {int(number): end for number, end in json.loads(last_line)[topic].items()}


def measure(spark, broker, scheme, given, folder):
    topic, counts_topic = f"words-{scheme}", f"counts-{scheme}"
    broker.create(topic, PARTITIONS)
    broker.create(counts_topic, 2, cleanup_policy="compact")
    kafka = Kafka(broker.address, topic, counts_topic)
    keys = keys_of(judged(read(spark, kafka), "words").where("reason is null"), "words")
    delay_ms = 1000 * given.load * given.workers / given.rate
    checkpoint = folder / scheme
    grouping = group(keys, "key", scheme, given.workers, checkpoint=str(checkpoint))
    out_s = {}

    def send(counts, batch):
        write(counts, batch, kafka)
        out_s[batch] = time.time()

    producer = Producer(broker.address, topic, given.rate, SHARE, moves_s=given.moves)
    producer.send(producer.words(WARM))  # the first batch compiles, and is not measured
    producer.flush()
    writer = grouping.fold(folds.sleeping(folds.count(), delay_ms)).writeStream
    writer = writer.outputMode("update").option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(with_short_errors(send, [])).start()
    while not out_s:
        assert query.isActive, query.exception()
        time.sleep(0.1)
    first_s = time.time()
    producer.run(given.seconds + given.after)
    stopped_s = time.time()
    query.stop()
    latencies, when, counted = [], [], []
    times = arrivals(broker.address, topic)
    begun = dict.fromkeys(range(PARTITIONS), 0)
    for batch in sorted(out_s):
        for number, end in ends_of(checkpoint, topic, batch).items():
            came = times[number][begun[number] : end]
            if out_s[batch] > stopped_s:
                continue  # its counts came out after the end
            begun[number] = end
            latencies.append(out_s[batch] - came)
            when.append(came)
            counted.append(np.ones(len(came), dtype=bool))
    for number, came in times.items():
        rest = came[begun[number] :]
        latencies.append(stopped_s - rest)
        when.append(rest)
        counted.append(np.zeros(len(rest), dtype=bool))
    latency, came = np.concatenate(latencies), np.concatenate(when) - first_s
    measured = (came >= 0) & (came < given.seconds)
    return latency[measured], came[measured], np.concatenate(counted)[measured]


def row(scheme, latency, counted):
    """p50 and p99, with ≥ where they fall among what was not counted."""
    cells, late = [], int((~counted).sum())
    for percent in (50, 99):
        bound = "≥ " if late > len(latency) * (1 - percent / 100) else ""
        cells.append(f"{bound}{np.percentile(latency, percent):.1f} s")
    return f"| {scheme} | {cells[0]} | {cells[1]} | {100 * late / len(latency):.0f} % |"


def panel(results):
    """The mean latency of the messages that came in each two seconds."""
    lines = []
    for scheme, (latency, came, counted) in results.items():
        latency, bins = latency[counted], (came[counted] // 2).astype(int)
        sums, sizes = np.bincount(bins, latency), np.bincount(bins)
        held = sizes > 0
        x = 2 * np.flatnonzero(held) + 1
        lines.append(Line(scheme, x.tolist(), (sums[held] / sizes[held]).tolist()))
    return Panel(
        "", "a message came, seconds since the start", "its mean latency in seconds", lines
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--after", type=float, default=30)
    parser.add_argument("--rate", type=float, default=600)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--moves", type=float, default=20)
    parser.add_argument("--schemes", default="key,partial,dynamic,graded")
    parser.add_argument("--plot", type=Path)
    given = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        print("| scheme | p50 | p99 | not counted at the end |\n|---|---|---|---|")
        for scheme in given.schemes.split(","):
            # A Spark for each: a cancelled task sleeps on, on a thread that the next one needs.
            with local_session(given.workers, jars=connector_jars()) as spark:
                spark.conf.set("spark.sql.shuffle.partitions", "2")
                latency, came, counted = measure(spark, broker, scheme, given, Path(folder))
            results[scheme] = latency, came, counted
            print(row(scheme, latency, counted), flush=True)
    if given.plot:
        title = f"{given.workers} workers at {given.load:.0%} load, the hot key moves"
        save([panel(results)], title, given.plot)


if __name__ == "__main__":
    main()
