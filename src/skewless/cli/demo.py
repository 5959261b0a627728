"""`skewless demo`: a skewed stream of words through Spark, with key grouping and graded choices."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from skewless.cli.command import command, option, path

WORKERS = 8
FILES = 6
MESSAGES = 240_000
DELAY_MS = 0.25  # with less, starting tasks on a slow machine hides what evenness saves
COMMON = (
    "the of and to a in that is was he for it with as his on be at by i this had not are "
    "but from or have an they which one you were all her she there would their we him been "
    "has when who will no more if out so up said what its about than into them can only "
    "other time new some could "
)


@command
@option("--out", type=path, default="results", help="Folder for the picture.")
def demo(out: Path) -> None:
    """Send a skewed word stream through Spark twice, and watch the work even out."""
    from skewless.report.demo import show
    from skewless.report.files import make_folder
    from skewless.report.plots import check_installed
    from skewless.schemes import scheme_of
    from skewless.spark.lab.pipeline import Pipeline, run
    from skewless.spark.lab.session import local_session
    from skewless.spark.observe.observer import Observer, Record

    check_installed()
    console = Console()
    make_folder(out)
    seen: dict[str, list[Record]] = {}
    best: list[tuple[str, int]] = []
    console.print(
        f"[bold]{MESSAGES:,} words[/], a few of them hot, through Spark Structured Streaming: "
        f"{FILES} micro-batches, {WORKERS} workers, {DELAY_MS} ms of work per word."
    )
    with tempfile.TemporaryDirectory(prefix="skewless-demo-") as folder:
        lines = Path(folder)
        write_words(lines)
        with (
            console.status("starting Spark …") as status,
            local_session(WORKERS) as spark,
        ):
            for scheme in ("key", "graded"):
                records = seen.setdefault(scheme, [])

                def tell(record: Record, scheme: str = scheme, records: Any = records) -> None:
                    records.append(record)
                    most = max(record.loads) / (sum(record.loads) / WORKERS)
                    console.print(
                        f"  {scheme:8} batch {len(records)}/{FILES}: {record.messages:,} words in "
                        f"{record.seconds:.1f} s, fullest worker {most:.2f} × the mean"
                    )

                status.update(f"{scheme} is running …")
                best = run(
                    spark,
                    Pipeline(lines, scheme_of(scheme), WORKERS, FILES, DELAY_MS),
                    Observer(),
                    tell,
                )
    show(console, seen, best, out)


def write_words(folder: Path) -> None:
    """Text files of Zipf-distributed words, ten to a line."""
    import numpy as np

    from skewless.hashing import identity
    from skewless.streams import stream_of

    stream = stream_of(f"zipf:z=1.3,keys=5000,messages={MESSAGES}")
    common = COMMON.split()
    names = {
        identity(rank): common[rank - 1] if rank <= len(common) else f"word{rank}"
        for rank in range(1, 5001)
    }
    keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
    words = [names[key] for key in keys.tolist()]
    each = len(words) // FILES
    for number in range(FILES):
        part = words[number * each : (number + 1) * each]
        text = "\n".join(" ".join(part[i : i + 10]) for i in range(0, len(part), 10))
        (folder / f"{number}.txt").write_text(text + "\n")
