"""Messages through a real broker: counts out equal counts in, and what is bad is told."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from confluent_kafka import Producer
from show.consume import read_counts

from skewless.errors import SkewlessError
from skewless.schemes import scheme_of
from skewless.spark import Observer
from skewless.spark.lab.kafka import NO_FIELD, NO_KEY, NO_VALUE, NOT_JSON, NOT_UTF8, Kafka
from skewless.spark.lab.pipeline import Pipeline, run

BAD_UTF8 = b"\xff\xfe"


def send(broker, topic, messages):
    producer = Producer({"bootstrap.servers": broker.address})
    for partition, (key, value) in enumerate(messages):
        producer.produce(topic, value, key, partition=partition % 2)
        producer.poll(0)
    assert producer.flush(30) == 0


def pipeline(broker, topics, split, scheme="partial", checkpoint=None, **options):
    kafka = Kafka(broker.address, *topics, split=split, options=options)
    return Pipeline(kafka, scheme_of(scheme), 3, checkpoint=checkpoint)


def comes(job, path):
    """Wait for a file of a job's checkpoint."""
    ends_s = time.monotonic() + 200
    while not path.exists():
        assert time.monotonic() < ends_s
        assert job.poll() is None
        time.sleep(0.1)


WORDS = [(None, b"the cat and the hat"), (b"k", "été ☃ the".encode()), (b"k", b"")] * 50
KEYS = [(b"hot", b"x"), (b"hot", None), ("ü".encode(), BAD_UTF8), (b"", b"y")] * 50
JSON = [
    (None, b'{"user": "ann", "n": 1}'),
    (None, b'{"user": 7}'),
    (None, '{"user": "é"}'.encode()),
    (None, b'{"user": ""}'),
] * 50
SENT = {
    "words": (
        WORDS,
        [(b"k", BAD_UTF8), (b"k", None)],
        Counter(["the", "cat", "and", "the", "hat", "été", "☃", "the"] * 50),
        {NOT_UTF8: 1, NO_VALUE: 1},
    ),
    "key": (
        KEYS,
        [(None, b"x"), (None, b"y"), (BAD_UTF8, b"z")],
        Counter({"hot": 100, "ü": 50, "": 50}),
        {NO_KEY: 2, NOT_UTF8: 1},
    ),
    "json:user": (
        JSON,
        [(None, b"{"), (None, b'{"n": 1}'), (None, b'{"user": null}'), (None, b"[1]"), (None, b"")],
        Counter({"ann": 50, "7": 50, "é": 50, "": 50}),
        {NOT_JSON: 3, NO_FIELD: 2},
    ),
}


@pytest.mark.parametrize("split", SENT)
def test_counts_out_of_kafka_equal_counts_in_and_bad_messages_are_counted(
    spark, broker, topics, split
):
    good, bad, expected, reasons = SENT[split]
    send(broker, topics[0], good)
    send(broker, topics[0], bad)
    told = []
    job = pipeline(broker, topics, split)
    best = run(spark, job, Observer(), told.append, top=2)
    found = read_counts(broker.address, topics[1])
    assert found.newest == dict(expected)
    assert [count for _, count in best] == [count for _, count in expected.most_common(2)]
    assert sum(record.messages for record in told) == expected.total()
    assert dict(job.bad.reasons) == reasons
    assert job.bad.of_batch(0) == job.bad.total == len(bad)
    partition, offset = job.bad.first
    assert (partition, offset) == (0, len(good) // 2)
    assert f"partition 0, offset {offset}" in job.bad.sentence(topics[0])


def test_a_checkpoint_goes_on_and_the_newest_count_of_each_key_stays_exact(
    spark, broker, topics, tmp_path
):
    expected: Counter[str] = Counter()
    for times in (3, 1, 2):
        send(broker, topics[0], [(None, b"a b a")] * times)
        expected.update({"a": 2 * times, "b": times})
        job = pipeline(broker, topics, "words", "graded", tmp_path / "checkpoint")
        best = run(spark, job, Observer())
        assert best == [("a", expected["a"]), ("b", expected["b"])]
    found = read_counts(broker.address, topics[1])
    assert found.newest == dict(expected)
    assert found.records == 6
    assert found.stepped_back == 0
    assert set(found.batches.values()) == {2}


def test_messages_that_are_gone_before_they_were_read_end_the_run_in_one_sentence(
    spark, broker, topics, tmp_path
):
    checkpoint = tmp_path / "checkpoint"
    send(broker, topics[0], [(None, b"a")] * 4)
    run(spark, pipeline(broker, topics, "words", checkpoint=checkpoint), Observer())
    send(broker, topics[0], [(None, b"gone")] * 4)
    broker.forget(topics[0], partition=0, before=4)
    send(broker, topics[0], [(None, b"a")] * 4)
    with pytest.raises(SkewlessError, match="no longer has the messages") as told:
        run(spark, pipeline(broker, topics, "words", checkpoint=checkpoint), Observer())
    assert "\n" not in str(told.value)
    job = pipeline(broker, topics, "words", checkpoint=checkpoint, failOnDataLoss="false")
    run(spark, job, Observer())
    assert read_counts(broker.address, topics[1]).newest == {"a": 8, "gone": 2}


@pytest.mark.timeout(600)
def test_ctrl_c_amid_a_batch_ends_a_run_that_follows_with_its_tables(broker, topics, tmp_path):
    command = [sys.executable, "-m", "skewless", "run", "--kafka", broker.address, "--follow"]
    command += ["--topic", topics[0], "--out-topic", topics[1], "--scheme", "key", "--workers", "2"]
    command += ["--delay-ms", "100", "--checkpoint", str(tmp_path)]
    send(broker, topics[0], [(None, b"a b a")])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as job:
        try:
            comes(job, tmp_path / "commits" / "0")
            send(broker, topics[0], [(None, b"a")] * 1200)  # a batch of two minutes
            comes(job, tmp_path / "offsets" / "1")
            time.sleep(3)
            job.send_signal(signal.SIGINT)
            out, errors = job.communicate(timeout=100)
        finally:
            job.kill()
    assert job.returncode == 0, errors
    assert not (tmp_path / "commits" / "1").exists(), "not amid a batch"
    assert out.startswith("Every message could be read.")
    assert "Traceback" not in errors
    assert read_counts(broker.address, topics[1]).newest == {"a": 2, "b": 1}


def test_small_batches_by_an_option_of_sparks_reader_give_the_same_counts(spark, broker, topics):
    good, _, expected, _ = SENT["words"]
    send(broker, topics[0], good)
    told = []
    job = pipeline(broker, topics, "words", "dynamic", maxOffsetsPerTrigger="60")
    best = run(spark, job, Observer(), told.append, top=3)
    assert len(told) >= 3
    assert best == sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    assert read_counts(broker.address, topics[1]).newest == dict(expected)


def test_a_message_without_anything_to_count_leaves_nothing_behind(
    spark, broker, topics, monkeypatch
):
    # No worker has anything to report, so there is no record to wait for.
    monkeypatch.setattr("skewless.spark.lab.pipeline._LAST_BATCH_S", 0.5)
    send(broker, topics[0], [(None, b"  \t ")])
    assert run(spark, pipeline(broker, topics, "words"), Observer()) == []
    assert read_counts(broker.address, topics[1]).newest == {}
