"""`skewless simulate`: balance without an engine."""

from __future__ import annotations

from skewless.cli import options
from skewless.cli.command import command, option
from skewless.cli.options import console_for, print_json


@command
@options.stream
@options.scheme(required=True)
@options.workers
@options.sources
@option("--source-column", help="Column of the stream that decides a message's source.")
@option(
    "--estimate",
    default="local",
    help="How sources know the loads: local, global or probe:T (messages).",
)
@options.seed
@options.as_json
def simulate(
    stream: str,
    scheme: str,
    workers: int,
    sources: int,
    source_column: str | None,
    estimate: str,
    seed: int,
    as_json: bool,
) -> None:
    """Route a stream without Spark, and say how even the work is."""
    from skewless.compiled.beside import compiling_beside
    from skewless.report.progress import messages_bar
    from skewless.report.tables import print_loads, table
    from skewless.schemes import scheme_of
    from skewless.simulate.balance import balance
    from skewless.streams import stream_of

    console = console_for(as_json)
    flow = stream_of(stream)

    def compile_router() -> None:
        made = scheme_of(scheme)
        made.warm_up(made.plan(workers, seed))

    with (
        compiling_beside(compile_router),
        messages_bar(console, "routing", flow.length()) as progress,
    ):
        result = balance(
            flow,
            scheme,
            workers,
            sources=sources,
            source_column=source_column,
            estimate=estimate,
            seed=seed,
            progress=progress,
        )
    figures = result.as_json()
    if as_json:
        print_json(figures)
        return
    loads, remark = figures.pop("loads"), figures.pop("remark", None)
    rows = [{"measure": name.replace("_", " "), "value": figures[name]} for name in figures]
    console.print(table("How even it was", rows))
    if workers <= 64:
        print_loads(console, result.scheme, loads)
    if remark:
        console.print(remark)
