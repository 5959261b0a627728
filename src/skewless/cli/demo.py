"""`skewless demo`: what this is about, in one screen."""

from __future__ import annotations

from rich.console import Console


def demo() -> None:
    """Key, shuffle and partial key grouping over a skewed stream: a table and the loads."""
    from skewless.report.progress import steps_spinner
    from skewless.report.tables import print_loads, table
    from skewless.simulate.balance import Case, balance_all

    console = Console()
    stream = "zipf:z=1.0,keys=10000,messages=1000000"
    with steps_spinner(console, f"routing {stream}"):
        results = balance_all(stream, [Case(s, 10, 5) for s in ("key", "shuffle", "partial")])
    columns = ("scheme", "workers", "imbalance", "percent_imbalance", "replication")
    rows = [{name: result.as_json()[name] for name in columns} for result in results]
    console.print(table(f"{stream}, 5 sources", rows))
    for result in results:
        print_loads(console, result.scheme, result.loads)
