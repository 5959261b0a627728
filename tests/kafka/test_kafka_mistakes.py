"""Mistakes are one sentence, soon, and secrets stay secret."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from skewless.errors import SkewlessError
from skewless.spark.lab import broker_probe
from skewless.spark.lab.broker_probe import addresses, check_broker
from skewless.spark.lab.connector import connector_packages
from skewless.spark.lab.jars import Packages, fetched
from skewless.spark.lab.kafka import Kafka, parse_options
from skewless.spark.lab.kafka_errors import failure

SECRET = "hunter2-of-the-test"


def command(*options):
    return subprocess.run(
        [sys.executable, "-m", "skewless", "run", "--scheme", "key", "--workers", "2", *options],
        capture_output=True, text=True, timeout=250,
    )  # fmt: skip


@contextmanager
def soon(limit_s):
    """It ends within the limit, and what a busy machine may add: Kafka's clients take minutes."""
    started_s = time.monotonic()
    yield
    assert time.monotonic() - started_s < limit_s + 20


def test_no_broker_is_one_sentence_before_spark_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    done = command("--kafka", f"127.0.0.1:{free}", "--topic", "a", "--out-topic", "b")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, "Spark has said something too"
    assert "No Kafka broker answers at 127.0.0.1" in done.stderr
    with soon(0), pytest.raises(SkewlessError, match="No Kafka broker answers"):
        check_broker([("127.0.0.1", free)], ["a"])


def test_a_name_that_no_host_can_have_is_one_sentence():
    with pytest.raises(SkewlessError, match=r"answers at broker\.\.example:9092"):
        check_broker([("broker..example", 9092)], ["a"])


def test_what_listens_and_is_not_a_broker_is_told_soon(monkeypatch):
    assert broker_probe.LIMIT_S < 10, "docs/kafka.md says so"
    monkeypatch.setattr(broker_probe, "LIMIT_S", 1.0)
    said = pytest.raises(SkewlessError, match="does not answer as a Kafka broker")
    with socket.create_server(("127.0.0.1", 0)) as silent, soon(1), said:
        check_broker([silent.getsockname()], ["a"])


@pytest.mark.parametrize("missing", [0, 1])
def test_a_topic_that_does_not_exist_is_told_and_not_made(broker, topics, missing):
    names = list(topics)
    names[missing] = "nowhere"
    for _ in range(2):
        with pytest.raises(SkewlessError, match="has no topic 'nowhere'"):
            Kafka(broker.address, *names).check()
    Kafka(broker.address, *topics).check()


def test_one_of_several_brokers_is_enough(broker, topics):
    Kafka(f"127.0.0.1:1, {broker.address}", *topics).check()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"brokers": "localhost"}, "HOST:PORT"),
        ({"brokers": "localhost:99999"}, "HOST:PORT"),
        ({"brokers": "http://localhost:80"}, "HOST:PORT"),
        ({"topic": ""}, "one topic"),
        ({"topic": "a,b"}, "one topic"),
        ({"out_topic": "words"}, "counted themselves"),
        ({"starting": "yesterday"}, "no offset to start from 'yesterday'"),
        ({"split": "lines"}, "no way to split"),
        ({"split": "json:"}, "no way to split"),
        ({"split": "words:x"}, "no way to split"),
        ({"options": {"kafka.bootstrap.servers": "x"}}, "leave it out"),
        ({"options": {"subscribe": "x"}}, "no Kafka option 'subscribe'"),
    ],
)
def test_malformed_options_are_one_sentence(given, sentence):
    usual = {"brokers": "localhost:9092", "topic": "words", "out_topic": "counts"}
    with pytest.raises(SkewlessError, match=sentence):
        Kafka(**(usual | given))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--topic", "a", "--stream", "zipf:z=1,keys=2,messages=2"], "--topic goes with --kafka"),
        (["--kafka", "h:1", "--topic", "a"], "--out-topic for their counts"),
        (["--kafka", "h:1", "--folder", "."], "Give one source"),
        (["--kafka", "h:1", "--topic", "a", "--out-topic", "b", "--out", "c"], "leave --out"),
    ],
)
def test_options_that_do_not_go_together_are_told_before_spark_starts(options, sentence):
    done = command(*options)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1, "Spark has said something too"


def test_no_message_repeats_an_option_that_may_be_a_secret():
    with pytest.raises(SkewlessError, match="number 2 of those given is not") as raised:
        parse_options(["kafka.a=b", SECRET])
    assert SECRET not in str(raised.value)
    kafka = Kafka("h:1", "a", "b", options=parse_options([f"kafka.sasl.jaas.config=x={SECRET}"]))
    assert kafka.options["kafka.sasl.jaas.config"] == f"x={SECRET}"
    assert SECRET not in repr(kafka)
    assert SECRET not in str(failure(Exception(f"odd x={SECRET} odd"), kafka))
    worker = (
        "thrown from the Python worker:\n\nTraceback (most recent call last):\n  File 'x', line 1\n"
    )
    raised = worker + "skewless.errors.SkewlessError: The plan is damaged.\n\nJVM stacktrace: a: b"
    assert str(failure(Exception(raised), kafka)) == "The query stopped: The plan is damaged."
    assert "KeyError: 'x'" in str(failure(Exception(worker + "KeyError: 'x'\n"), kafka))
    assert "login" in str(failure(Exception("…SaslAuthenticationException: no"), kafka))


def test_a_login_that_fails_shows_nothing_of_its_secret(broker, topics, tmp_path):
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="me" password="{SECRET}";'
    )
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
        "kafka.default.api.timeout.ms": "4000",
        "kafka.request.timeout.ms": "3000",
        "fetchOffset.numRetries": "1",
    }
    given = [part for o in options.items() for part in ("--kafka-option", "=".join(o))]
    where = ["--kafka", broker.address, "--topic", topics[0], "--out-topic", topics[1]]
    log = tmp_path / "log.jsonl"
    keep = ["--checkpoint", str(tmp_path / "checkpoint"), "--log", str(log), "--json"]
    done = command(*where, *given, *keep)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert written, "the query did not begin"
    for text in (done.stderr.encode(), *written):
        assert SECRET.encode() not in text


def test_a_registry_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 -Xmx64m"
    )
    with pytest.raises(
        SkewlessError, match=r"could not be fetched .*: connect this machine"
    ) as told:
        fetched(connector_packages(), tmp_path)
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == [], "something was left behind"


def test_a_package_that_does_not_exist_is_named(tmp_path):
    packages = Packages("no-such", ("org.apache.kafka:kafka-clients:0.0.0-none",))
    # In the resolver's words, which it has only if the registry answered.
    with pytest.raises(SkewlessError, match=r"kafka-clients;0\.0\.0-none: not found"):
        fetched(packages, tmp_path)


def test_each_spark_gets_the_connector_that_was_tried_with_it():
    def version_of(spark):
        return connector_packages(spark).coordinates[0].rsplit(":", 1)[1]

    assert version_of("4.2.1") == "4.2.1"
    assert version_of("4.3.0") == "4.2.0"
    with pytest.raises(SkewlessError, match=r"needs Spark 4\.0 or later"):
        connector_packages("3.5.9")


def test_addresses_may_be_of_either_kind():
    assert addresses("[::1]:9092,b:1") == [("::1", 9092), ("b", 1)]
