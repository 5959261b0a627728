"""Results on disk: CSV and PNG, each written whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

from skewless.errors import SkewlessError
from skewless.report.plots import save
from skewless.results import Reproduction


def make_folder(folder: Path) -> None:
    """Make a folder for results, or refuse it: called before the work, for after it is too late."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SkewlessError(
            f"The folder '{folder}' cannot be written to ({error.strerror}): give another."
        ) from error


def write_reproduction(result: Reproduction, folder: Path) -> list[str]:
    """Write the rows and the pictures of a result; the files written."""
    make_folder(folder)
    table = folder / f"{result.name}.csv"
    half = table.with_suffix(".csv.part")
    names = list(dict.fromkeys(name for row in result.rows for name in row))
    with half.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(result.rows)
    os.replace(half, table)
    written = [str(table)]
    if result.panels:
        picture = folder / f"{result.name}.png"
        half = folder / f"{result.name}.part.png"
        save(result.panels, result.title, half)
        os.replace(half, picture)
        written.append(str(picture))
    return written
