"""Run as a program: heavy hitters and naive Bayes on a small cluster, an executor killed amid each.

`python -m tests.faults.apps_job FOLDER` leaves `result.json` and Spark's event log in FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from skewless import folds
from skewless.apps import NaiveBayes, heavy_hitters
from skewless.apps.counting.fold import WorkerSummaries
from tests.faults.cluster_job import KEY, ROWS, WORKERS, cluster, kill_one_executor
from tests.faults.marking import Marking

LABEL = "case when id % 7 < 5 then 'x' else 'y' end as label"


def main(folder: Path) -> None:
    spark = cluster(folder)
    # Out of a shuffle, rows come in another order at each attempt.
    rows = spark.range(0, ROWS, 1, 6).selectExpr("id", f"{KEY} as w", LABEL).repartition(4, "id")
    result = {"heavy hitters": hitters(rows, folder), "naive Bayes": bayes(rows, folder)}
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


def hitters(rows, folder):
    marks = marks_in(folder, "hitters")
    module = sys.modules["skewless.apps.heavy_hitters"]
    module.WorkerSummaries = lambda *given, **named: Marking(
        WorkerSummaries(*given, **named), 0.25, marks
    )
    found = heavy_hitters(rows, "w", 0.001, workers=WORKERS)  # has a counter for every key
    killed = kill_one_executor(marks, "None")
    return {"found": [[r["w"], r["count"], r["error"]] for r in found.collect()], "killed": killed}


def bayes(rows, folder):
    marks, plain = marks_in(folder, "bayes"), folds.count
    folds.count = lambda: Marking(plain(), 0.1, marks)
    killed = kill_one_executor(marks, "None")
    table = NaiveBayes("label", ["w", "id_of_day"]).statistics(
        rows.selectExpr("label", "w", "id % 3 as id_of_day"), workers=WORKERS
    )
    names = ("feature", "value", "label", "n")
    return {"found": [[row[n] for n in names] for row in table.to_pylist()], "killed": killed}


def marks_in(folder, name):
    marks = folder / f"{name}-marks"
    marks.mkdir()
    return marks


if __name__ == "__main__":
    main(Path(sys.argv[1]))
