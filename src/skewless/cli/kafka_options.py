"""Options of `skewless run` for Kafka, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from skewless.cli.command import option
from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from skewless.spark.lab.kafka import Kafka

_option = partial(option, heading="Kafka")
_OPTIONS = (
    _option("--kafka", metavar="HOST:PORT", help="A Kafka broker as source and sink."),
    _option("--topic", help="The topic whose messages are read."),
    _option("--out-topic", help="The topic for the counts, best a compacted one."),
    _option(
        "--starting",
        default="earliest",
        metavar="earliest|latest",
        help="Where a run without a checkpoint begins; latest implies --follow.",
    ),
    _option(
        "--split",
        default="words",
        metavar="words|key|json:FIELD",
        help="What is counted: words of values, keys of messages, or a field of JSON values.",
    ),
    _option(
        "--follow",
        is_flag=True,
        help="Keep counting until Ctrl-C, instead of stopping at the topic's present end.",
    ),
    _option(
        "--kafka-option",
        "kafka_options",
        metavar="NAME=VALUE",
        multiple=True,
        help="An option for Spark's Kafka reader and writer, such as kafka.security.protocol=SSL; "
        "may be repeated. Values are never shown.",
    ),
)


def with_kafka_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with all of them."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def kafka_source(
    brokers: str | None,
    topic: str | None,
    out_topic: str | None,
    starting: str,
    split: str,
    follow: bool,
    options: tuple[str, ...],
) -> Kafka | None:
    """What the options ask for, checked as far as no broker is needed; None without --kafka."""
    given = {
        "--topic": topic is not None,
        "--out-topic": out_topic is not None,
        "--starting": starting != "earliest",
        "--split": split != "words",
        "--follow": follow,
        "--kafka-option": bool(options),
    }
    if brokers is None:
        for name in (name for name, is_given in given.items() if is_given):
            raise SkewlessError(f"{name} goes with --kafka HOST:PORT: give the broker too.")
        return None
    if topic is None or out_topic is None:
        raise SkewlessError(
            "With --kafka give --topic for the messages and --out-topic for their counts."
        )
    from skewless.spark.lab.kafka import Kafka, parse_options

    return Kafka(brokers, topic, out_topic, starting, split, follow, parse_options(list(options)))
