"""How fast an event log is read, and in how much memory.

    python bench/event_log.py [--bytes 1e9] [--stages 500] [--codec plain|zstd|gzip]

Writes a made-up log of that size with lines as long as Spark's own, and reads it in a process of
its own. A stage has as many tasks as fill the log.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

TASK_BYTES = 5700  # of the end of a task in Spark 4.3
READ = """
import resource, sys, time
from skewless.diagnose.event_log.log import diagnose_log
start_s = time.perf_counter()
found = diagnose_log(sys.argv[1])
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.perf_counter() - start_s:.1f} {used:.0f} {len(found.stages)}")
"""


def accumulables(count):
    return [
        {"ID": i, "Name": f"internal.metrics.number{i}", "Update": 12345, "Value": 12345 * i,
         "Internal": True, "Count Failed Values": True}
        for i in range(count)
    ]  # fmt: skip


def lines(size, stages):
    task: dict[str, Any] = {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": 0,
        "Stage Attempt ID": 0,
        "Task Type": "ResultTask",
        "Task End Reason": {"Reason": "Success"},
        "Task Info": {
            "Task ID": 0,
            "Index": 0,
            "Launch Time": 0,
            "Executor ID": "1",
            "Finish Time": 0,
            "Accumulables": [],
        },
        "Task Executor Metrics": {f"Memory{i}": 0 for i in range(22)},
        "Task Metrics": {
            **{f"Executor Metric {i}": 12345678 for i in range(30)},
            "Input Metrics": {"Records Read": 1000},
            "Shuffle Read Metrics": {"Total Records Read": 0},
        },
    }
    left = TASK_BYTES - len(json.dumps(task))
    task["Task Info"]["Accumulables"] = accumulables(left // len(json.dumps(accumulables(10)[9:])))
    per_stage = max(1, int(size / stages / TASK_BYTES))

    def line(event):
        return json.dumps(event, separators=(",", ":")) + "\n"

    yield line({"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"})
    yield line({"Event": "SparkListenerApplicationStart", "App Name": "made", "Timestamp": 0})
    added = {"Event": "SparkListenerExecutorAdded", "Executor ID": "1"}
    yield line({**added, "Executor Info": {"Total Cores": 16}})
    for stage in range(stages):
        info = {"Stage ID": stage, "Stage Attempt ID": 0, "Number of Tasks": per_stage}
        yield line({"Event": "SparkListenerStageSubmitted", "Stage Info": info})
        task["Stage ID"] = stage
        for index in range(per_stage):
            own = task["Task Info"]
            own["Index"], own["Launch Time"] = index, 1000 * (index // 16)
            own["Finish Time"] = own["Launch Time"] + (60_000 if index == 7 else 1000)
            yield line(task)
        done = {**info, "Accumulables": accumulables(60)}
        yield line({"Event": "SparkListenerStageCompleted", "Stage Info": done})
    yield line({"Event": "SparkListenerApplicationEnd", "Timestamp": 10**9})


def opened(path, codec):
    if codec == "zstd":
        return pa.CompressedOutputStream(str(path), "zstd")
    return gzip.open(path, "wb", 1) if codec == "gzip" else path.open("wb")


def write(path, size, stages, codec):
    written = 0
    with opened(path, codec) as file:
        for line in lines(size, stages):
            file.write(line.encode())
            written += len(line)
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--stages", type=int, default=500)
    parser.add_argument("--codec", choices=["plain", "zstd", "gzip"], default="zstd")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skewless-log-") as folder:
        path = Path(folder) / "log"
        start_s = time.perf_counter()
        written = write(path, options.bytes, options.stages, options.codec)
        print(f"written: {written / 1e9:.2f} GB in {time.perf_counter() - start_s:.0f} s")
        done = subprocess.run(
            [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True
        )
    seconds, mebibytes, stages = done.stdout.split()
    print(f"read: {seconds} s, {mebibytes} MiB at most, {stages} stages ({options.codec})")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"the writer itself: {own:.0f} MiB")


if __name__ == "__main__":
    main()
