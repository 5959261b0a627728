"""Drivers and the broker die amid the work, and the topic grows: nothing is lost, nothing twice.

The campaign is bigger with SKEWLESS_KAFKA_KILLS and SKEWLESS_KAFKA_WORDS; see bench/kafka_kills.py.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from show.consume import read_counts
from show.produce import Producer

from tests.faults.test_faults import kill, killed_amid, last_batch
from tests.kafka.conftest import ROOT

KILLS = int(os.environ.get("SKEWLESS_KAFKA_KILLS", "3"))
WORDS = int(os.environ.get("SKEWLESS_KAFKA_WORDS", "60000"))
DELAY_MS = float(os.environ.get("SKEWLESS_KAFKA_DELAY_MS", "0.2"))
WORKERS = 2

pytestmark = pytest.mark.timeout(600 + 60 * KILLS)


class Drivers:
    """`skewless run` on one checkpoint, started again and again."""

    def __init__(self, address, topics, folder):
        self.folder = folder
        where = ["--kafka", address, "--topic", topics[0], "--out-topic", topics[1]]
        size = ["--scheme", "graded", "--workers", str(WORKERS), "--delay-ms", str(DELAY_MS)]
        goes_on = ["--checkpoint", str(folder / "checkpoint"), "--log", str(folder / "batches")]
        parts = ["--kafka-option", f"maxOffsetsPerTrigger={max(2000, WORDS // (4 * KILLS + 8))}"]
        self._command = [sys.executable, "-m", "skewless", "run", *where, *size, *goes_on, *parts]

    def start(self, *more):
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with (self.folder / "log.txt").open("ab") as log, (self.folder / "out").open("wb") as out:
            return subprocess.Popen(
                [*self._command, *more], cwd=ROOT, env=environment, stdout=out, stderr=log
            )

    def said(self):
        return (self.folder / "log.txt").read_text()[-3000:]

    def running_batch(self, process, least, limit_s=200):
        """Wait until a batch from `least` on is running, and a task of it too: its number."""
        ends_s = time.monotonic() + limit_s
        begun = self.folder / "checkpoint" / "skewless" / "batches"
        while time.monotonic() < ends_s:
            assert process.poll() is None, self.said()
            running = max((int(p.name) for p in begun.glob("[0-9]*")), default=-1)
            if running >= least and running > last_batch(self.folder, "commits"):
                return running
            time.sleep(0.01)
        raise AssertionError("no batch began: " + self.said())

    def kill_amid_a_batch(self, process, least):
        """Kill it while a batch from `least` on runs; the batch's number."""
        while True:
            batch = self.running_batch(process, least)
            if killed_amid(process, self.folder, batch):
                return batch

    def finish(self):
        """Count what is left and end; what it printed."""
        process = self.start("--json")
        try:
            code = process.wait(280)
        finally:
            kill(process)
        assert code == 0, self.said()
        return json.loads((self.folder / "out").read_text())


def sizes(address, topic, partitions):
    """How many messages each partition of a topic got."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "sizes", "log_level": 2})
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        return [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
    finally:
        consumer.close()


def test_kafka_counts_are_exact_although_drivers_and_broker_die_and_the_topic_grows(
    broker, topics, tmp_path
):
    # Half of the words come from the start on, and half from when the topic grows, however long
    # drivers take to start on a busy machine.
    rate = WORDS / (15 * (KILLS + 1))
    stop = threading.Event()
    halves = []
    for seed in range(2):
        producer = Producer(broker.address, topics[0], rate, seed=seed)
        sending = threading.Thread(target=producer.run, args=(WORDS / 2 / rate, stop), daemon=True)
        halves.append((producer, sending))
    halves[0][1].start()
    drivers = Drivers(broker.address, topics, tmp_path)
    killed = []
    process = None
    try:
        for number in range(KILLS):
            process = drivers.start("--follow")
            # A later one than that of the last kill: this driver has run that one again.
            least = killed[-1] + 1 if killed else 0
            if number == KILLS // 2:
                running = drivers.running_batch(process, least)
                halves[1][1].start()
                broker.grow(topics[0], 5)
                broker.stop(signal.SIGKILL)
                time.sleep(1)
                broker.start()
                # It lives on, and plans batches with the new partitions.
                least = running + 2
            killed.append(drivers.kill_amid_a_batch(process, least))
        for producer, sending in halves:
            sending.join(120)
            assert not sending.is_alive()
            assert producer.failed == 0
        told = drivers.finish()
    finally:
        stop.set()
        if process is not None:
            kill(process)
    assert killed == sorted(set(killed)), "a restart went back"
    assert all(sizes(broker.address, topics[0], 5)), "a new partition got no message"
    sent = halves[0][0].counts + halves[1][0].counts
    assert sent.total() >= WORDS - 2
    found = read_counts(broker.address, topics[1])
    assert found.newest == dict(sent)
    assert found.stepped_back == 0
    assert told["bad"]["total"] == 0
    report = {"words": sent.total(), "kills": killed, "records": found.records}
    print(json.dumps(report | {"batches": last_batch(tmp_path, "commits") + 1}))
