"""`skewless reproduce`: a table or figure of a paper, checked point by point."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skewless.cli import options
from skewless.cli.command import command, option, path
from skewless.cli.options import console_for, print_json
from skewless.errors import SkewlessError, unknown


@command
@click.argument("experiment", required=False)
@option("--quick", is_flag=True, help="Run a small size, about a minute.")
@option("--data", type=path, help="Folder of real streams to use in place of synthetic ones.")
@option("--out", type=path, default="results", help="Folder for the CSV and the PNG.")
@option("--streams", type=int, help="Random streams to average over, where the paper does.")
@options.seed
@options.as_json
def reproduce(
    experiment: str | None,
    quick: bool,
    data: Path | None,
    out: Path,
    streams: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Reproduce a table or figure of a paper, as CSV and PNG; exit with 1 if it differs.

    EXPERIMENT is its name, such as partial-table2; without one, all are listed.
    """
    from skewless.hashing import check_seed
    from skewless.papers import EXPERIMENTS
    from skewless.report.files import make_folder, write_reproduction
    from skewless.report.plots import check_installed
    from skewless.report.progress import steps_spinner
    from skewless.report.tables import print_reproduction
    from skewless.results import Setting

    console = console_for(as_json)
    if experiment is None:
        if as_json:
            print_json(list(EXPERIMENTS))
        else:
            console.print("Experiments: " + ", ".join(EXPERIMENTS))
        return
    if experiment not in EXPERIMENTS:
        raise unknown("experiment", experiment, EXPERIMENTS)
    if data is not None and not data.is_dir():
        wrong = "is a file" if data.is_file() else "does not exist"
        raise SkewlessError(f"The data folder '{data}' {wrong}: give an existing folder.")
    if streams is not None and streams < 1:
        raise SkewlessError(f"The number of streams must be at least 1, not {streams}.")
    check_seed(seed)
    make_folder(out)
    check_installed()
    with steps_spinner(console, experiment) as step:
        result = EXPERIMENTS[experiment](
            Setting(quick=quick, seed=seed, streams=streams, data=data, step=step)
        )
    saved = write_reproduction(result, out)
    if as_json:
        print_json(
            {
                "name": result.name,
                "holds": result.holds,
                "checks": [vars(check) for check in result.checks],
                "rows": [dict(row) for row in result.rows],
                "files": saved,
            }
        )
    else:
        print_reproduction(console, result, saved)
    if not result.holds:
        sys.exit(1)
