"""Rows in and out of every task of a join, and processor time, read from Spark's event log."""

import json
from pathlib import Path

import numpy as np

JOINS = ("SortMergeJoin", "ShuffledHashJoin", "BroadcastHashJoin", "SymmetricHashJoin")
ROWS = "number of output rows"


class EventLog:
    """The growing log of one application, read on from where the last reading ended."""

    def __init__(self, folder: Path):
        self.folder, self.at = folder, 0

    def read(self):
        (path,) = [p for p in self.folder.iterdir() if p.is_file()]
        with path.open() as lines:
            lines.seek(self.at)
            text = lines.read()
        whole = text.rfind("\n") + 1
        self.at += len(text[:whole].encode())
        return [json.loads(line) for line in text[:whole].splitlines()]


def join_metrics(node, found):
    """The ids of what joins count, in a plan and all below it."""
    if node["nodeName"].startswith(JOINS):
        found.update(m["accumulatorId"] for m in node["metrics"] if m["name"] == ROWS)
    for child in node["children"]:
        join_metrics(child, found)
    return found


def tasks_of_joins(events):
    """(rows in, rows out) of each task that joined; rows in as read from shuffles."""
    ids = set()
    for event in events:
        if "sparkPlanInfo" in event:
            join_metrics(event["sparkPlanInfo"], ids)
    rows = []
    for event in events:
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        counted = [a for a in event["Task Info"]["Accumulables"] if a["ID"] in ids]
        read = event["Task Metrics"]["Shuffle Read Metrics"]["Total Records Read"]
        if counted or read:
            out = sum(int(a.get("Update", 0)) for a in counted)
            rows.append((event["Stage ID"], read, out, bool(counted)))
    joining = {stage for stage, _, _, counted in rows if counted}
    return np.array([(read, out) for stage, read, out, _ in rows if stage in joining], np.float64)


def cpu_s(events):
    """Processor time of all tasks."""
    ends = [e for e in events if e["Event"] == "SparkListenerTaskEnd"]
    return sum(e["Task Metrics"]["Executor CPU Time"] for e in ends) / 1e9


def unevenness(work, partitions):
    """The largest over the mean; a task that got nothing left no line."""
    count = max(partitions, work.size)
    return float(work.max() * count / work.sum()) if work.sum() else 1.0
