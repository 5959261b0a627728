"""The show: a broker, a producer whose hot key moves, and three queries on the same topic.

Every message takes its time at a worker (it sleeps), so that workers behave like machines of their
own. All of it is on this machine, and is gone at the end: after two minutes, or at Ctrl-C.

python -m show.live [--seconds 120] [--rate 200] [--workers 4] [--delay-ms 14] [--port 0]
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from show.broker import Broker
from show.produce import Producer
from skewless import folds
from skewless.errors import SkewlessError
from skewless.live import Page
from skewless.spark import Observer, group
from skewless.spark.lab.connector import connector_jars
from skewless.spark.lab.kafka import Kafka, judged, keys_of, read, with_short_errors, write
from skewless.spark.lab.session import local_session
from skewless.spark.observe.observer import Record

SCHEMES = ("key", "partial", "graded")
TOPIC = "words"
MOST_S = 5.0  # a batch holds at most what comes in this time


@dataclass(frozen=True)
class Show:
    """What is shown.

    rate: messages a second; with `delay_ms` at each of `workers` it is the load:
        rate · delay_ms / 1000 / workers
    port: of the page; 0 takes a free one
    """

    seconds: float = 120.0
    rate: float = 200.0
    workers: int = 4
    delay_ms: float = 14.0
    every: str = "2 seconds"
    port: int = 0


def start(
    spark: SparkSession, kafka: Kafka, scheme: str, show: Show, observer: Observer, folder: Path
) -> StreamingQuery:
    """One query from the topic to a topic of its own."""
    keys = keys_of(judged(read(spark, kafka), kafka.split).where("reason is null"), kafka.split)
    checkpoint = str(folder / scheme)
    counts = group(
        keys, "key", scheme, show.workers, checkpoint=checkpoint, observer=observer
    ).fold(folds.sleeping(folds.count(), show.delay_ms))

    def send(rows: DataFrame, batch: int) -> None:
        write(rows, batch, kafka)

    writer = counts.writeStream.outputMode("update").queryName(scheme)
    writer = writer.foreachBatch(with_short_errors(send, []))
    writer = writer.option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime=show.every).start()


def line(record: Record) -> str:
    """How a batch went, for the terminal."""
    mean = record.messages / record.workers
    uneven = max(record.loads) / mean if mean else 1.0
    return (
        f"{record.scheme:<8} batch {record.batch:>3}: {record.messages:>6,} messages in "
        f"{record.seconds:5.1f} s, busiest worker {uneven:4.1f} × the mean, "
        f"{record.replication or 0:.2f} workers per key"
    )


def play(show: Show) -> None:
    """Run it to the end; whatever ends it, nothing is left behind."""
    jars = connector_jars()
    schemes = SCHEMES
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="skewless-live-")))
        broker = held.enter_context(Broker())
        broker.create(TOPIC, 4)
        for scheme in schemes:
            broker.create(f"counts-{scheme}", 2, cleanup_policy="compact")
        page = held.enter_context(contextlib.closing(Page(show.port)))
        print(f"Live page: {page.url}", flush=True)
        watching = {
            scheme: held.enter_context(contextlib.closing(Observer(page=page)))
            for scheme in schemes
        }
        threads = show.workers * len(schemes)
        spark = held.enter_context(local_session(threads, jars=jars))
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        queries = []
        for scheme, observer in watching.items():
            # Small batches, so that there is something to see every few seconds.
            most = {"maxOffsetsPerTrigger": str(int(MOST_S * show.rate))}
            kafka = Kafka(broker.address, TOPIC, f"counts-{scheme}", options=most)
            queries.append(start(spark, kafka, scheme, show, observer, folder))
        held.callback(_stop, queries)
        held.enter_context(_producing(broker.address, show))
        _watch(watching, queries, show.seconds)


@contextlib.contextmanager
def _producing(address: str, show: Show) -> Iterator[None]:
    producer, stop = Producer(address, TOPIC, show.rate), threading.Event()
    sending = threading.Thread(target=producer.run, args=(show.seconds, stop), daemon=True)
    sending.start()
    try:
        yield
    finally:
        stop.set()
        sending.join(20)


def _stop(queries: list[StreamingQuery]) -> None:
    for query in queries:
        query.stop()


def _watch(
    watching: dict[str, Observer], queries: Sequence[StreamingQuery], seconds: float
) -> None:
    """Print a line per query and batch."""
    told = dict.fromkeys(watching, -1)
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        for scheme, observer in watching.items():
            for record in observer.records():
                if record.batch is not None and record.batch > told[scheme]:
                    told[scheme] = record.batch
                    print(line(record), flush=True)
        for query in queries:
            if not query.isActive:
                raise SkewlessError(f"The query {query.name} stopped: {query.exception()}")
        time.sleep(0.5)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    usual = Show()
    parser.add_argument("--seconds", type=float, default=usual.seconds)
    parser.add_argument("--rate", type=float, default=usual.rate, help="messages a second")
    parser.add_argument("--workers", type=int, default=usual.workers)
    parser.add_argument("--delay-ms", type=float, default=usual.delay_ms)
    parser.add_argument("--port", type=int, default=usual.port, help="of the page; 0: a free one")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        play(Show(given.seconds, given.rate, given.workers, given.delay_ms, port=given.port))
    except KeyboardInterrupt:
        print("Stopped.")
    except SkewlessError as error:
        raise SystemExit(f"Error: {error}") from None


if __name__ == "__main__":
    main()
