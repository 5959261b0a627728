"""Run as a program: a join on a small cluster, an executor killed amid it.

`python -m tests.faults.join_job FOLDER` leaves `result.json` and Spark's event log in FOLDER.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

from skewless.spark import join
from tests.faults.cluster_job import KEY, ROWS, cluster, kill_one_executor
from tests.faults.marking import leave_mark

WORKERS, SLEEP_S = 6, 1.0


def main(folder: Path) -> None:
    spark = cluster(folder)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    marks = folder / "marks"
    marks.mkdir()
    # Out of a shuffle, rows come in another order at each attempt.
    left = spark.range(0, ROWS, 1, 6).selectExpr("id as x", f"{KEY} as w").repartition(4, "x")
    right = spark.range(0, 120, 1, 2).selectExpr("id as y", "concat('w', id) as w")
    right = right.union(spark.sql("select -id as y, 'hot' as w from range(1, 4)"))
    joined = join(left, right, "w", "full", workers=WORKERS)
    where = str(marks)

    def slowly(batches):
        for batch in batches:
            leave_mark(where)
            time.sleep(SLEEP_S)
            yield batch

    killed = kill_one_executor(marks, "None")
    found = Counter(map(tuple, joined.mapInArrow(slowly, joined.schema).collect()))
    expected = Counter(map(tuple, left.join(right, "w", "full").collect()))
    result = {
        "killed": killed,
        "spread": "__skewless" in joined._jdf.queryExecution().toString(),
        "rows": sum(found.values()),
        "missing": sum((expected - found).values()),
        "doubled": sum((found - expected).values()),
    }
    (folder / "result.json").write_text(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
