"""Kafka on both ends of the pipeline, with Spark's own reader and writer.

A message becomes its words, its key, or a field of its JSON; what cannot be read that way is
counted and told. Counts go out as records whose key is the key and whose value is its count so far,
as text, with the number of the micro-batch in the header `batch`. A batch that is run again after a
failure writes the same records again, so the newest record of each key is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from skewless.errors import SkewlessError, unknown
from skewless.spark.lab.broker_probe import addresses, check_broker
from skewless.spark.lab.frames import words_of

STARTS = ("earliest", "latest")
SPLITS = ("words", "key", "json:FIELD")
READER_OPTIONS = (
    "failOnDataLoss",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "maxOffsetsPerTrigger",
    "maxRecordsPerPartition",
    "maxTriggerDelay",
    "minOffsetsPerTrigger",
    "minPartitions",
)
BATCH_HEADER = "batch"
_PREFIX = "kafka."
_OURS = (
    "kafka.bootstrap.servers",
    "kafka.key.deserializer",
    "kafka.value.deserializer",
    "kafka.key.serializer",
    "kafka.value.serializer",
    "kafka.auto.offset.reset",
    "kafka.enable.auto.commit",
    "kafka.interceptor.classes",
)
_STRICT_JSON = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}

NO_VALUE, NO_KEY = "without a value", "without a key"
NOT_UTF8, NOT_JSON, NO_FIELD = "not UTF-8", "not a JSON object", "without the field"
REASONS = (NO_VALUE, NO_KEY, NOT_UTF8, NOT_JSON, NO_FIELD)


@dataclass(frozen=True)
class Kafka:
    """Where to read and write.

    brokers: HOST:PORT, several separated by commas
    starting: where a run without a checkpoint begins: `earliest`, or `latest` for what comes next
    split: what a message's keys are: the `words` of its value, its `key`, or `json:FIELD`
    follow: go on as messages come; else to the end of the topic as it is at the start
    options: for Spark's Kafka reader and, if they begin with `kafka.`, writer; may hold secrets,
        and so are neither shown nor logged
    """

    brokers: str
    topic: str
    out_topic: str
    starting: str = "earliest"
    split: str = "words"
    follow: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        addresses(self.brokers)
        for name, topic in (("source", self.topic), ("sink", self.out_topic)):
            if not topic or "," in topic:
                raise SkewlessError(f"The {name} is one topic, not '{topic}': give its name.")
        if self.topic == self.out_topic:
            raise SkewlessError(
                f"Counts would go into '{self.topic}', the topic that is read, and be counted "
                "themselves: give another topic for them."
            )
        if self.starting not in STARTS:
            raise unknown("offset to start from", self.starting, STARTS)
        kind, colon, name = self.split.partition(":")
        if kind not in ("words", "key", "json") or (kind == "json") != bool(name):
            raise unknown("way to split messages", self.split, SPLITS)
        if colon and kind != "json":
            raise unknown("way to split messages", self.split, SPLITS)
        for option in self.options:
            _check_option(option)

    @property
    def endless(self) -> bool:
        """Whether it runs until it is stopped."""
        return self.follow or self.starting == "latest"

    def check(self) -> None:
        """One sentence if there is no broker or a topic is missing; takes seconds, needs no Spark.

        A broker that wants TLS or a login is only connected to.
        """
        protocol = self.options.get("kafka.security.protocol", "PLAINTEXT")
        plain = protocol.upper() == "PLAINTEXT"
        check_broker(addresses(self.brokers), (self.topic, self.out_topic), plain)

    def without_secrets(self, text: str) -> str:
        """A text in which no value of an option is left."""
        for value in sorted(filter(None, self.options.values()), key=len, reverse=True):
            text = text.replace(value, "…")
        return text


def parse_options(texts: list[str]) -> dict[str, str]:
    """Options given as NAME=VALUE; none of them is repeated in a message, as it may be a secret."""
    options = {}
    for number, text in enumerate(texts, 1):
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise SkewlessError(
                f"A Kafka option is NAME=VALUE, such as kafka.security.protocol=SSL, and number "
                f"{number} of those given is not."
            )
        options[name.strip()] = value
    return options


def read(spark: SparkSession, kafka: Kafka) -> DataFrame:
    """The messages as Spark's reader gives them: key, value, partition, offset, timestamp, …"""
    reader = spark.readStream.format("kafka").options(**kafka.options)
    reader = reader.option("kafka.bootstrap.servers", kafka.brokers)
    reader = reader.option("subscribe", kafka.topic).option("startingOffsets", kafka.starting)
    return reader.load()


def judged(messages: DataFrame, split: str) -> DataFrame:
    """The messages with `text`, from which keys are made, and `reason` why there is none, or null.

    Partition and offset stay, to find a message by.
    """
    kind, _, name = split.partition(":")
    raw = F.col("key") if kind == "key" else F.col("value")
    text = raw.cast("string")
    reason = F.when(raw.isNull(), NO_KEY if kind == "key" else NO_VALUE)
    reason = reason.when(~F.is_valid_utf8(text), NOT_UTF8)
    if kind == "json":
        fields = F.from_json(text, "map<string,string>", _STRICT_JSON)
        text = F.try_element_at(fields, F.lit(name))
        reason = reason.when(fields.isNull(), NOT_JSON).when(text.isNull(), NO_FIELD)
    return messages.select(text.alias("text"), reason.alias("reason"), "partition", "offset")


def keys_of(good: DataFrame, split: str) -> DataFrame:
    """One row per key of the messages that have a text."""
    text = F.col("text")
    return good.select((words_of(text) if split == "words" else text).alias("key"))


def write(counts: DataFrame, batch: int, kafka: Kafka) -> None:
    """Send each count; done when the broker has them all."""
    key, count = (F.col(f"`{name}`") for name in counts.columns)
    records = counts.select(
        key.cast("string").alias("key"), count.cast("string").alias("value"), _header(batch)
    )
    ours = {name: value for name, value in kafka.options.items() if name.startswith(_PREFIX)}
    writer = records.write.format("kafka").options(**ours).option("topic", kafka.out_topic)
    writer.option("kafka.bootstrap.servers", kafka.brokers).save()


def with_short_errors(
    send: Callable[[DataFrame, int], None], failed: list[Exception]
) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that raises one word, and keeps what was raised in `failed`.

    When a query is stopped amid a batch or its batch fails, Spark searches the text of the error by
    a regular expression that overflows the stack on a long one, as of a failed job; the query's
    thread then dies, and whoever waits for the query waits for ever.
    """

    def call(counts: DataFrame, batch: int) -> None:
        try:
            send(counts, batch)
        except Exception as error:
            failed.append(error)
            raise RuntimeError(type(error).__name__) from None

    return call


def _header(batch: int) -> Column:
    number = F.lit(str(batch)).cast("binary")
    return F.array(
        F.struct(F.lit(BATCH_HEADER).alias("key"), number.alias("value")),
    ).alias("headers")


def _check_option(name: str) -> None:
    if name in _OURS:
        raise SkewlessError(f"The Kafka option {name} is set by Spark or by --kafka: leave it out.")
    if not name.startswith(_PREFIX) and name not in READER_OPTIONS:
        raise unknown("Kafka option", name, [*READER_OPTIONS, "kafka.NAME of Kafka's own clients"])
