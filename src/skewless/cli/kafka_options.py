"""Options of `skewless run` for Kafka, and what they say together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from skewless.spark.lab.kafka import Kafka

_PANEL = "Kafka"

Brokers = Annotated[
    str | None,
    typer.Option(
        help="A Kafka broker as source and sink.", metavar="HOST:PORT", rich_help_panel=_PANEL
    ),
]
Topic = Annotated[
    str | None, typer.Option(help="The topic whose messages are read.", rich_help_panel=_PANEL)
]
OutTopic = Annotated[
    str | None,
    typer.Option(
        help="The topic for the counts: key and newest count; best compacted.",
        rich_help_panel=_PANEL,
    ),
]
Starting = Annotated[
    str,
    typer.Option(
        help="Where a run without a checkpoint begins; latest implies --follow.",
        metavar="earliest|latest",
        rich_help_panel=_PANEL,
    ),
]
Split = Annotated[
    str,
    typer.Option(
        help="What is counted: words of values, keys of messages, or a field of JSON values.",
        metavar="words|key|json:FIELD",
        rich_help_panel=_PANEL,
    ),
]
Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="Go on as messages come, until Ctrl-C; else to the topic's present end.",
        rich_help_panel=_PANEL,
    ),
]
KafkaOptions = Annotated[
    list[str] | None,
    typer.Option(
        help="An option for Spark's Kafka reader and writer, such as kafka.security.protocol=SSL; "
        "never shown. Can be given several times.",
        metavar="NAME=VALUE",
        rich_help_panel=_PANEL,
    ),
]


def kafka_source(
    brokers: str | None,
    topic: str | None,
    out_topic: str | None,
    starting: str,
    split: str,
    follow: bool,
    options: list[str] | None,
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

    return Kafka(brokers, topic, out_topic, starting, split, follow, parse_options(options or []))
