"""Event logs made by hand, line by line, so that every figure in them is known."""

from __future__ import annotations

import json

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"


def task(seconds, *, start=0.0, records=100, executor="1", index=0, **more):
    launch = int(1000 * start)
    info = {
        "Index": index,
        "Launch Time": launch,
        "Finish Time": launch + int(1000 * seconds),
        "Executor ID": executor,
        "Speculative": more.get("speculative", False),
        "Accumulables": [{"ID": i, "Metadata": "sql"} for i in more.get("accumulators", ())],
    }
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage Attempt ID": 0,
        "Task End Reason": {"Reason": more.get("reason", "Success")},
        "Task Info": info,
        "Task Metrics": {
            "Disk Bytes Spilled": more.get("spilled", 0),
            "Input Metrics": {"Records Read": records},
            "Shuffle Read Metrics": {"Total Records Read": 0},
        },
    }


def stage(tasks, *, number=0, accumulators=(), execution=None, whole=True):
    info = {"Stage ID": number, "Stage Attempt ID": 0, "Number of Tasks": len(tasks)}
    properties = {} if execution is None else {"spark.sql.execution.id": str(execution)}
    job = {"Event": "SparkListenerJobStart", "Job ID": number, "Stage IDs": [number]}
    yield {**job, "Properties": properties}
    yield {"Event": "SparkListenerStageSubmitted", "Stage Info": info}
    for ended in tasks:
        yield {**ended, "Stage ID": number}
    ids = [{"ID": i, "Metadata": "sql"} for i in accumulators]
    if whole:
        done = {**info, "Accumulables": ids}
        yield {"Event": "SparkListenerStageCompleted", "Stage Info": done}


def node(name, text="", children=(), **metrics):
    return {
        "nodeName": name,
        "simpleString": text or name,
        "children": list(children),
        "metrics": [
            {"name": key.replace("_", " "), "accumulatorId": number}
            for key, number in metrics.items()
        ],
    }


def log(*events, executors=("1",), cores=4):
    yield {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}
    yield {"Event": "SparkListenerApplicationStart", "App Name": "made", "Timestamp": 0}
    for executor in executors:
        info = {"Total Cores": cores}
        added = {"Event": "SparkListenerExecutorAdded", "Executor ID": executor}
        yield {**added, "Executor Info": info}
    yield from events
    yield {"Event": "SparkListenerApplicationEnd", "Timestamp": 60_000}


def text(events):
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events).encode()
