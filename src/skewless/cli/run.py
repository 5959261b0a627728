"""`skewless run`: the pipeline on Spark, from a source to a sink."""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skewless.cli import options
from skewless.cli.command import command, option, path
from skewless.cli.kafka_options import kafka_source, with_kafka_options
from skewless.cli.options import console_for, numbers, print_json
from skewless.errors import SkewlessError

MOST_SHOWN = 100  # batches; the log has them all


@command
@options.scheme(default="graded")
@option(
    "--workers", type=int, help="Number of workers; by default, the number of cores, at least 2."
)
@option("--stream", help="A stream as the source, such as words:path=FILE.")
@option("--folder", type=path, help="A folder of text files as the source, one file per batch.")
@with_kafka_options
@option(
    "--batches",
    default=8,
    help="Number of micro-batches into which a --stream is cut; 0 runs one batch job.",
)
@option("--out", type=path, help="Parquet folder for the counts; replaces an earlier result.")
@option(
    "--checkpoint",
    type=path,
    help="Folder from which a run continues after a stop (--folder, --kafka).",
)
@option("--delay-ms", default=0.0, help="Time each message takes at its worker.")
@option("--speeds", help="Speed of each worker, which divides --delay-ms: s,s,… (1 each).")
@option("--log", type=path, help="File for a JSON line per micro-batch.")
@option("--prometheus", type=int, help="Port on 127.0.0.1 for Prometheus; 0 takes a free one.")
@option(
    "--live",
    type=int,
    is_flag=False,
    flag_value=0,
    metavar="[PORT]",
    help="Serve a live page for a browser on 127.0.0.1, at this port or a free one.",
)
@option("--top", default=10, help="How many of the most frequent keys to print.")
@options.master
@options.seed
@options.as_json
def run(
    scheme: str,
    workers: int | None,
    stream: str | None,
    folder: Path | None,
    kafka: str | None,
    topic: str | None,
    out_topic: str | None,
    starting: str,
    split: str,
    follow: bool,
    kafka_options: tuple[str, ...],
    batches: int,
    out: Path | None,
    checkpoint: Path | None,
    delay_ms: float,
    speeds: str | None,
    log: Path | None,
    prometheus: int | None,
    live: int | None,
    top: int,
    master: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Count the keys of a stream, a folder of texts or a Kafka topic on Spark, with even work."""
    from skewless.report.files import make_folder
    from skewless.report.tables import observed, table
    from skewless.schemes import scheme_of
    from skewless.schemes.api import check_workers
    from skewless.spark.lab.connector import connector_jars
    from skewless.spark.lab.pipeline import Pipeline
    from skewless.spark.lab.pipeline import run as run_pipeline
    from skewless.spark.lab.session import local_session
    from skewless.spark.observe.observer import RECORDS_KEPT, Observer, Record
    from skewless.streams import stream_of

    if sum(given is not None for given in (stream, folder, kafka)) != 1:
        raise SkewlessError(
            "Give one source: --stream for a stream, --folder for text files, or --kafka for a "
            "broker."
        )
    if top < 1:
        raise SkewlessError(f"The number of keys to print must be at least 1, not {top}.")
    console = console_for(as_json)
    workers = max(2, os.cpu_count() or 2) if workers is None else workers
    check_workers(workers)
    topics = kafka_source(kafka, topic, out_topic, starting, split, follow, kafka_options)
    source = topics or (folder if folder is not None else stream_of(str(stream)))
    pipeline = Pipeline(
        source,
        scheme_of(scheme),
        workers,
        batches,
        delay_ms,
        out,
        checkpoint,
        seed,
        None if speeds is None else numbers(speeds, "--speeds"),
    )
    if out is not None:
        make_folder(out.parent)
    jars: list[Path] = []
    if topics is not None:
        topics.check()
        jars = connector_jars()
    observer = Observer(log=log, port=prometheus, page=live)
    if observer.port is not None:
        console.print(f"Prometheus: 127.0.0.1:{observer.port}")
    if observer.page is not None:
        console.print(f"Live page: {observer.page.url}")
    records: deque[Record] = deque(maxlen=RECORDS_KEPT)
    batches_done = messages = 0
    with (
        closing(observer),
        console.status("starting Spark …") as status,
        local_session(workers, master, jars) as spark,
    ):

        def tell(record: Record) -> None:
            nonlocal batches_done, messages
            records.append(record)
            batches_done += 1
            messages += record.messages
            status.update(f"{batches_done} batches done, {messages:,} messages{ending} …")

        ending = "; Ctrl-C ends" if topics is not None and topics.endless else ""
        status.update(f"running{ending} …")
        best = run_pipeline(spark, pipeline, observer, tell, top)
    bad = pipeline.bad
    if as_json:
        lines = [asdict(record) for record in records]
        told: dict[str, Any] = {"top": [list(pair) for pair in best], "batches": lines}
        if topics is not None:
            told["batches"] = [line | {"bad": bad.of_batch(line["batch"])} for line in lines]
            told["bad"] = bad.as_json()
        print_json(told)
        return
    if topics is not None:
        console.print(bad.sentence(topics.topic))
    if not best:
        console.print("There was nothing to count that had not been counted before.")
        return
    rows = [
        {"batch": "-" if r.batch is None else str(r.batch)}
        | observed(
            r.scheme,
            r.messages,
            r.seconds,
            r.messages_per_second,
            r.stddev_percent,
            r.replication or 0.0,
        )
        for r in list(records)[-MOST_SHOWN:]
    ]
    console.print(table("How even each batch was; latency in seconds", rows))
    console.print(
        table("Most frequent keys", [{"key": key, "count": count} for key, count in best])
    )
    if out is not None:
        console.print(f"Written: {out}", markup=False)
    if topics is not None:
        console.print(f"Sent to: {topics.out_topic}", markup=False)
