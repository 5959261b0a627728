"""`skewless diagnose`: which key, what it costs, what to do, did it help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skewless.cli import options
from skewless.cli.command import command, option, path
from skewless.cli.options import console_for, print_json
from skewless.errors import SkewlessError

if TYPE_CHECKING:
    from rich.console import Console

WORKERS = 8
_PARQUET, _TABS = (".parquet", ".pq"), (".tsv", ".tab")


@command
@click.argument("file", type=path, required=False)
@option("--stream", help="A stream: name:param=value,… as for simulate.")
@option(
    "--key",
    "keys",
    multiple=True,
    help="Column of FILE that is the key; may be repeated, to find out which is worst.",
)
@option("--workers", default=WORKERS, help="Number of workers to predict for.")
@option(
    "--work",
    default="fold",
    help="What you do with the rows of a key: fold, group, map or aggregate.",
)
@option("--sources", default=8, help="Number of tasks that read the data and route it.")
@option("--event-log", type=path, help="An event log of Spark: a file or a rolling folder.")
@option("--against", type=path, help="The event log after a change, to compare with --event-log.")
@option("--html", type=path, help="File for the answer as an HTML page.")
@options.seed
@options.as_json
def diagnose(
    file: Path | None,
    stream: str | None,
    keys: tuple[str, ...],
    workers: int,
    work: str,
    sources: int,
    event_log: Path | None,
    against: Path | None,
    html: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find out which key is hot, what it costs and what to do, from data or an event log.

    FILE is a Parquet, CSV or TSV file, or a folder of Parquet files; --key names the column to
    diagnose.
    """
    from skewless.diagnose.page.page import check_page, document, write_page
    from skewless.report.files import make_folder

    console = console_for(as_json)
    _check(file, stream, keys, event_log, against)
    if html is not None:
        check_page(html)
        make_folder(html.parent)
    if event_log is not None:
        found, body = _of_logs(console, event_log, against, as_json)
    else:
        specs = [stream] if stream is not None else [_spec(file, column) for column in keys]
        found, body = _of_data(console, specs, workers, work, sources, seed, as_json)
    if html is not None:
        write_page(html, document("skewless diagnose", body))
        console.print(f"Written: {html}", markup=False)
    if as_json:
        print_json(found.to_dict())


def _check(
    file: Path | None,
    stream: str | None,
    keys: tuple[str, ...],
    event_log: Path | None,
    against: Path | None,
) -> None:
    if sum(given is not None for given in (file, stream, event_log)) != 1:
        raise SkewlessError(
            "Give one thing to diagnose: --stream S, FILE --key COLUMN, or --event-log PATH."
        )
    if (file is None) != (not keys):
        raise SkewlessError(
            "A file needs its key column, and only a file takes one: FILE --key COLUMN."
        )
    if against is not None and event_log is None:
        raise SkewlessError(
            "--against compares two event logs: give the one before with --event-log."
        )


def _spec(file: Path | None, column: str) -> Any:
    """The stream of a file's column, by the file's name; of a TSV, by name through its header."""
    from skewless.streams.csv import CommaSeparated
    from skewless.streams.parquet import Parquet
    from skewless.streams.tsv import TabSeparated

    name = str(file).removesuffix(".gz").lower()
    if name.endswith(_PARQUET) or (file is not None and file.is_dir()):
        return Parquet(str(file), column)
    if name.endswith(".csv"):
        return CommaSeparated(str(file), column)
    if name.endswith(_TABS):
        if column.isdecimal():
            return TabSeparated(str(file), int(column))
        return CommaSeparated(str(file), column, "\t")
    raise SkewlessError(
        f"The kind of '{file}' is not known by its name: give a file that ends in .parquet, .csv "
        "or .tsv (.gz may follow), a folder of Parquet files, or a --stream such as "
        "words:path=FILE."
    )


def _of_data(
    console: Console,
    streams: list[Any],
    workers: int,
    work: str,
    sources: int,
    seed: int,
    as_json: bool,
) -> tuple[Any, str]:
    from skewless.diagnose.data import diagnose_stream, ranking
    from skewless.diagnose.page.data import data_body, ranking_body
    from skewless.report.diagnosis import print_data, print_ranking
    from skewless.report.progress import messages_bar
    from skewless.streams import stream_of

    made = []
    for stream in streams:
        flow = stream_of(stream)
        with messages_bar(console, "reading", flow.length()) as progress:
            made.append(
                diagnose_stream(
                    flow, workers, work=work, sources=sources, seed=seed, progress=progress
                )
            )
    if len(made) == 1:
        if not as_json:
            print_data(console, made[0])
        return made[0], data_body(made[0])
    ranked = ranking(made)
    if not as_json:
        print_ranking(console, ranked)
    return ranked, ranking_body(ranked)


def _of_logs(console: Console, before: Path, after: Path | None, as_json: bool) -> tuple[Any, str]:
    from skewless.diagnose.compare import compare_logs
    from skewless.diagnose.event_log.files import log_files
    from skewless.diagnose.event_log.log import diagnose_log
    from skewless.diagnose.page.log import comparison_body, log_body
    from skewless.report.diagnosis import print_comparison, print_log
    from skewless.report.progress import bytes_bar

    logs = []
    for log in (before,) if after is None else (before, after):
        with bytes_bar(console, f"reading {log.name}", log_files(log).size_bytes) as progress:
            logs.append(diagnose_log(log, progress))
    if len(logs) == 1:
        if not as_json:
            print_log(console, logs[0])
        return logs[0], log_body(logs[0])
    compared = compare_logs(*logs)
    if not as_json:
        print_comparison(console, compared)
    return compared, comparison_body(compared)
