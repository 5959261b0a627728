"""`skewless run`: the pipeline on Spark, from a source to a sink."""

from __future__ import annotations

import os
from collections import deque
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from skewless.cli.kafka_options import (
    Brokers,
    Follow,
    KafkaOptions,
    OutTopic,
    Split,
    Starting,
    Topic,
    kafka_source,
)
from skewless.cli.options import (
    AsJson,
    SchemeSpec,
    Seed,
    console_for,
    numbers,
    path_option,
    print_json,
)
from skewless.errors import SkewlessError

MOST_SHOWN = 100  # batches; the log has them all


def run(
    scheme: SchemeSpec = "graded",
    workers: Annotated[
        int | None, typer.Option(help="Number of workers; as many as this machine has cores.")
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="A stream as the source, e.g. words:path=FILE.")
    ] = None,
    folder: Annotated[
        Path | None, path_option("A folder of text files as the source, a file a batch.")
    ] = None,
    kafka: Brokers = None,
    topic: Topic = None,
    out_topic: OutTopic = None,
    starting: Starting = "earliest",
    split: Split = "words",
    follow: Follow = False,
    kafka_option: KafkaOptions = None,
    batches: Annotated[
        int, typer.Option(help="Micro-batches a --stream is cut into; 0 runs one batch job.")
    ] = 8,
    out: Annotated[
        Path | None, path_option("Parquet folder for the counts; replaces an earlier result.")
    ] = None,
    checkpoint: Annotated[
        Path | None, path_option("Folder from which a stopped run goes on (--folder, --kafka).")
    ] = None,
    delay_ms: Annotated[float, typer.Option(help="Time each message takes at its worker.")] = 0.0,
    speeds: Annotated[
        str | None,
        typer.Option(help="Speed of each worker, which divides --delay-ms: s,s,… (1 each)."),
    ] = None,
    log: Annotated[Path | None, path_option("File for a JSON line per micro-batch.")] = None,
    prometheus: Annotated[
        int | None, typer.Option(help="Port on 127.0.0.1 for Prometheus; 0 takes a free one.")
    ] = None,
    live: Annotated[
        int | None,
        typer.Option(
            metavar="[PORT]",
            help="Serve a live page for a browser at this port of 127.0.0.1, or at a free one.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How many of the most frequent keys to print.")] = 10,
    master: Annotated[
        str | None, typer.Option(help="Spark master; local with a thread per worker if not given.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Count keys on Spark: source, splitter, route, workers, merge, sink; watched as it runs."""
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
    topics = kafka_source(kafka, topic, out_topic, starting, split, follow, kafka_option)
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
        console.print(f"Written: {out}")
    if topics is not None:
        console.print(f"Sent to: {topics.out_topic}")
