"""`skewless queue`: the same stream in time, with capacities and late feedback."""

from __future__ import annotations

from skewless.cli import options
from skewless.cli.command import command, option
from skewless.cli.options import console_for, numbers, print_json
from skewless.errors import SkewlessError

NOT_OVER = {"recovery": "not over"}


@command
@options.stream
@options.scheme(required=True)
@options.workers
@option(
    "--load",
    type=float,
    required=True,
    help="Offered load: the work that arrives ÷ the work that all workers can do.",
)
@options.sources
@option("--capacities", help="Speed of each worker: c,c,… (1 each by default).")
@option(
    "--change",
    "changes",
    metavar="M:c,c,…",
    multiple=True,
    help="New capacities from message M on (may be repeated); more or fewer of them add or remove "
    "workers.",
)
@option(
    "--costs",
    default="constant",
    help="Cost of a message: constant:value=1, evenly:min=1,max=64,values=64 or geometric:… by "
    "key, exponential:mean=1.",
)
@option("--arrivals", default="even", help="How messages arrive: even or poisson.")
@option("--delay", default=0.0, help="Time from a message's end until its source hears of it.")
@options.seed
@options.as_json
def queue(
    stream: str,
    scheme: str,
    workers: int,
    load: float,
    sources: int,
    capacities: str | None,
    changes: tuple[str, ...],
    costs: str,
    arrivals: str,
    delay: float,
    seed: int,
    as_json: bool,
) -> None:
    """Simulate a stream through workers with queues, and say how long messages take."""
    from skewless.report.progress import messages_bar
    from skewless.report.tables import observed, table
    from skewless.simulate.queue.run import Cluster
    from skewless.simulate.queue.run import queue as run_queue
    from skewless.streams import stream_of

    console = console_for(as_json)
    flow = stream_of(stream)
    cluster = Cluster(
        workers,
        load,
        sources,
        None if capacities is None else numbers(capacities, "--capacities"),
        [_change(text) for text in changes],
        costs,
        arrivals,  # type: ignore[arg-type]  # the cluster refuses other words
        delay,
    )
    with messages_bar(console, "queueing", flow.length()) as progress:
        result = run_queue(flow, scheme, cluster, seed=seed, progress=progress)
    figures = result.as_json()
    if as_json:
        print_json(figures)
        return
    loads, shares = figures.pop("loads"), figures.pop("utilisation")
    joined_or_left = figures.pop("changes", [])
    rows = [{"measure": name.replace("_", " "), "value": figures[name]} for name in figures]
    console.print(table("How long messages took, and how even the work was", rows))
    seen = observed(
        result.balance.scheme,
        result.balance.messages,
        result.elapsed,
        result.throughput,
        result.balance.stddev_percent,
        result.balance.replication,
    )
    console.print(table("As the Distribution Observer sees it", [seen]))
    if joined_or_left:
        rows = [c if c["recovery"] is not None else c | NOT_OVER for c in joined_or_left]
        console.print(table("Workers joined or left", rows))
    if len(loads) <= 64:
        queues = result.series.queues[-1].tolist()
        each = [
            {"worker": w, "load": loads[w], "utilisation": shares[w], "queue_at_the_end": queues[w]}
            for w in range(len(loads))
        ]
        console.print(table("Each worker", each))


def _change(text: str) -> tuple[int, list[float]]:
    message, colon, capacities = text.partition(":")
    try:
        at = float(message)
        if not colon or at != int(at):
            raise ValueError
    except (ValueError, OverflowError):
        raise SkewlessError(
            f"--change takes a message number and capacities, such as 6000000:5,5,1, not '{text}'."
        ) from None
    return int(at), numbers(capacities, "--change")
