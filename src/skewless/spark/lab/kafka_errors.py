"""What Kafka's clients say when a query stops, in one sentence without secrets."""

from __future__ import annotations

import re

from skewless.errors import SkewlessError
from skewless.spark.lab.kafka import Kafka

# In this order: the first that occurs in Spark's message is the cause.
_CAUSES = {
    ("OffsetOutOfRange", "DATA_LOSS", "data may have been lost", "aged out"): (
        "The topic no longer has the messages at which the checkpoint goes on: start with another "
        "checkpoint, or give --kafka-option failOnDataLoss=false to count without them."
    ),
    ("SaslAuthentication", "SslAuthentication", "SSLHandshake", "IllegalSaslState"): (
        "The broker refused the login, or TLS failed: check what --kafka-option hands over."
    ),
    ("AuthorizationException",): (
        "The broker does not allow to read or write these topics: ask for access to them."
    ),
    ("UnknownTopicOrPartition", "UnknownTopicId"): (
        "One of the topics does not exist, or not any more: create it, and start again."
    ),
    ("without key", "compacted topic"): (
        "The topic for the counts refuses records without a key: please report this."
    ),
    ("RecordTooLarge",): (
        "A key is longer than the topic for the counts takes: raise its max.message.bytes, and "
        "kafka.max.request.size by --kafka-option."
    ),
    ("ConfigException", "KAFKA_SOURCE_OPTION", "IllegalArgumentException"): (
        "Kafka's client refused the options: check names and values of --kafka-option."
    ),
    ("TimeoutException", "DisconnectException", "Failed to construct kafka", "CallTimedOut"): (
        "The broker stopped answering: start it, and run again; with the same --checkpoint the run "
        "goes on where it stopped."
    ),
}


def failure(error: Exception, kafka: Kafka) -> SkewlessError:
    """The sentence for what stopped a query."""
    told = str(error)
    for words, sentence in _CAUSES.items():
        if any(word in told for word in words):
            return SkewlessError(sentence)
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    # Of an error in Python, the first line says only that there was one.
    _, _, traceback = told.partition("Traceback (most recent call last):")
    raised = re.search(r"^(?:[\w.]*\.)?SkewlessError: (.+)|^([\w.]+: .+)", traceback, re.MULTILINE)
    said = raised[1] or raised[2] if raised else lines[0] if lines else type(error).__name__
    return SkewlessError(f"The query stopped: {kafka.without_secrets(said)[:300]}")
