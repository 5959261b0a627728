"""`skewless compare`: schemes against each other on Spark."""

from __future__ import annotations

from dataclasses import asdict

from skewless.cli import options
from skewless.cli.command import command, option
from skewless.cli.options import console_for, print_json


@command
@options.stream
@option("--schemes", required=True, help="Schemes, separated by commas: key,partial,….")
@options.workers
@option("--delay-ms", default=0.0, help="Time each message takes at its worker.")
@options.master
@option("--sources", default=8, help="Number of files, and so of tasks that read the stream.")
@option("--rounds", default=3, help="Timed runs of each scheme; the median counts.")
@options.seed
@options.as_json
def compare(
    stream: str,
    schemes: str,
    workers: int,
    delay_ms: float,
    master: str | None,
    sources: int,
    rounds: int,
    seed: int,
    as_json: bool,
) -> None:
    """Count a stream's keys on Spark with each scheme, and compare time, balance and copies."""
    import numpy as np

    from skewless import measures
    from skewless.report.progress import steps_spinner
    from skewless.report.tables import observed, table
    from skewless.spark import compare as compare_on_spark
    from skewless.spark.lab.compare import check_comparison
    from skewless.spark.lab.session import local_session
    from skewless.spec import split_list
    from skewless.streams import stream_of

    console = console_for(as_json)
    flow = stream_of(stream)
    specs = split_list(schemes) if schemes.strip() else []
    made = check_comparison(specs, workers, delay_ms, sources, rounds, seed)
    flow.check()
    with (
        steps_spinner(console, "comparing on Spark") as step,
        local_session(workers, master) as spark,
    ):
        results = compare_on_spark(
            spark,
            flow,
            made,
            workers,
            delay_ms=delay_ms,
            sources=sources,
            rounds=rounds,
            seed=seed,
            step=step,
        )
    if as_json:
        print_json([asdict(result) for result in results])
        return
    seen = [
        observed(
            r.scheme,
            r.messages,
            r.wall_s,
            r.throughput,
            measures.stddev_percent(np.array(r.loads)),
            r.replication,
        )
        | {"ideal_s": r.ideal_s, "imbalance": r.imbalance}
        for r in results
    ]
    said = f"{flow.spec}, {workers} workers, {delay_ms} ms a message; one result for all."
    console.print(said, markup=False)
    console.print(table("Latency in seconds", seen))
