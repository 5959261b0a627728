"""Make a log small and anonymous enough to commit: python scrub.py LOG OUT.gz

Keeps the lines that the reader parses, and of them what it may look at; hosts, paths, users and
stack traces go.
"""

import gzip
import json
import sys
from pathlib import Path

from skewless.diagnose.event_log.codecs import lines_of
from skewless.diagnose.event_log.files import log_files

TASK = ("Input Metrics", "Output Metrics", "Shuffle Read Metrics", "Shuffle Write Metrics")
PROPERTIES = ("spark.sql.execution.id", "streaming.sql.batchId")
KINDS = (
    "LogStart",
    "ApplicationStart",
    "ApplicationEnd",
    "ExecutorAdded",
    "JobStart",
    "JobEnd",
    "StageSubmitted",
    "StageCompleted",
    "TaskStart",
    "TaskEnd",
    "SQLExecutionStart",
    "SQLAdaptiveExecutionUpdate",
    "SQLExecutionEnd",
)


def scrubbed(event):
    kind = event["Event"].rpartition("SparkListener")[2]
    if kind not in KINDS:
        return None
    if "Stage Info" in event:
        event["Stage Info"]["Stage Name"] = "run at jobs.py"
    for name in ("User", "Stage Infos", "physicalPlanDescription", "details", "description"):
        event.pop(name, None)
    for name in ("jobTags", "modifiedConfigs", "Task Executor Metrics", "errorMessage"):
        event.pop(name, None)
    if "Executor Info" in event:
        event["Executor Info"] = {"Total Cores": event["Executor Info"]["Total Cores"]}
    if "Properties" in event:
        kept = event["Properties"] or {}
        event["Properties"] = {k: kept[k] for k in PROPERTIES if k in kept}
    if "Stage Info" in event:
        info = event["Stage Info"]
        for name in ("RDD Info", "Details", "Parent IDs"):
            info.pop(name, None)
        info["Accumulables"] = sql_only(info)
        if "Failure Reason" in info:
            info["Failure Reason"] = "made to fail"
    if "Task Info" in event:
        event["Task Info"].pop("Host", None)
        event["Task Info"]["Accumulables"] = sql_only(event["Task Info"])
        event["Task End Reason"] = {"Reason": event.get("Task End Reason", {}).get("Reason")}
        metrics = event.get("Task Metrics") or {}
        event["Task Metrics"] = {k: metrics[k] for k in TASK if k in metrics}
    if "Job Result" in event:
        event["Job Result"] = {"Result": event["Job Result"]["Result"]}
    if "sparkPlanInfo" in event:
        without_paths(event["sparkPlanInfo"])
    return event


def sql_only(info):
    return [
        {"ID": a["ID"], "Metadata": "sql"}
        for a in info.get("Accumulables", ())
        if a.get("Metadata") == "sql"
    ]


def without_paths(node):
    node["metadata"] = {}
    if "/" in node["simpleString"]:
        node["simpleString"] = node["nodeName"]
    for child in node["children"]:
        without_paths(child)


def main(log, out):
    with gzip.GzipFile(out, "wb", 9, mtime=0) as file:
        for path in log_files(log).files:
            for line in lines_of(Path(path), lambda read: None):
                event = scrubbed(json.loads(line))
                if event is not None:
                    file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
