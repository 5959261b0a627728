"""`skewless reproduce`: a table or figure of a paper, checked point by point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skewless.cli.options import AsJson, Seed, console_for, path_option, print_json
from skewless.errors import SkewlessError, unknown


def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(help="Its name, e.g. partial-table2; none lists all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small size: about a minute.")] = False,
    data: Annotated[
        Path | None, path_option("Folder of real streams to use in place of synthetic ones.")
    ] = None,
    out: Annotated[Path, path_option("Folder for the CSV and the PNG.")] = Path("results"),
    streams: Annotated[
        int | None, typer.Option(help="Random streams to average over, where the paper does.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Reproduce a table or figure of a paper: CSV, PNG, and what was seen; exit 1 if it differs."""
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
        raise typer.Exit(1)
