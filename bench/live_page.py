"""What the live page costs a job, and what its server holds after a day. Ratios within one run.

    python bench/live_page.py [--rows 400000] [--batches 6] [--rounds 6]

First the server alone: 100,000 batches of 500 workers, with one reader that reads and one that does
not. Then a worker's fold of 10,000 words an Arrow batch, with and without counting its hottest
keys, by processor time. Then the same stream on a local Spark with an observer that has no page,
with a page that nobody looks at, and with one that a browser shows, in turn; the first batch of
each run is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from skewless import folds
from skewless.folds.hottest import HottestKeys
from skewless.folds.worker import FoldJob, fold_batches
from skewless.live import HotKey, Page, Sight

WAYS = ("observer", "page", "page and browser")
LOOK = """
import shutil, sys, time
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    program, options = shutil.which("chromium"), ["--no-sandbox"]
    browser = playwright.chromium.launch(executable_path=program, args=options)
    page = browser.new_page()
    page.goto(sys.argv[1])
    print("open", flush=True)
    sys.stdin.read()
    browser.close()
"""


def words(rows, seed):
    ranks = np.random.default_rng(seed).zipf(1.3, rows) % 100_000
    return pa.array([f"word{rank}" for rank in ranks.tolist()])


def fold_costs(rounds):
    """Seconds of processor time for a worker's fold, without and with its hottest keys."""
    column = words(1_000_000, 1)
    batches = [
        pa.RecordBatch.from_arrays([column.slice(at, 10_000)], ["k0"])
        for at in range(0, len(column), 10_000)
    ]

    def job(hottest):
        partial = pa.schema([("k0", pa.string()), ("p0", pa.int64())])
        return FoldJob(1, (folds.count(),), ((),), partial, (1,), partial, hottest=hottest)

    taken = {False: [], True: []}
    for _ in range(2 * rounds + 1):
        for counts in taken:
            start_s = time.process_time()
            for _ in fold_batches(job(HottestKeys() if counts else None), batches):
                pass
            taken[counts].append(time.process_time() - start_s)
    plain, counted = (statistics.median(times[1:]) for times in taken.values())
    print(f"worker's fold: {plain:.3f} s plain, {counted:.3f} s with keys: {counted / plain:.3f}")


def stream_costs(rows, batches, rounds):
    """Messages a second of a stream, by way."""
    from skewless.spark import Observer, group
    from skewless.spark.lab.session import local_session

    speeds = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder, local_session(2) as spark:
        source = Path(folder) / "in"
        source.mkdir()
        for batch in range(batches):
            pq.write_table(pa.table({"w": words(rows, batch)}), source / f"{batch:03}.parquet")
        for turn in range(rounds + 1):
            for way in WAYS[turn % 3 :] + WAYS[: turn % 3]:
                checkpoint = f"{folder}/{turn}-{WAYS.index(way)}"
                page = None if way == "observer" else Page()
                observer = Observer(page=page)
                reader = spark.readStream.schema("w string").option("maxFilesPerTrigger", 1)
                grouping = group(
                    reader.parquet(str(source)),
                    "w",
                    "graded",
                    2,
                    checkpoint=checkpoint,
                    observer=observer,
                )
                writer = grouping.fold(folds.count()).writeStream.outputMode("update")
                writer = writer.format("noop").option("checkpointLocation", checkpoint)
                with looking(page) if way.endswith("browser") else contextlib.nullcontext():
                    writer.trigger(availableNow=True).start().awaitTermination()
                while len(observer.records()) < batches:
                    time.sleep(0.05)
                seconds = [record.seconds for record in observer.records()][1:]
                if turn:  # the first is for Spark to get warm
                    speeds[way].append(rows * len(seconds) / sum(seconds))
                if page is not None:
                    page.close()
                shutil.rmtree(checkpoint)
    base = statistics.median(speeds["observer"])
    for way in WAYS:
        each = ", ".join(f"{speed:,.0f}" for speed in speeds[way])
        middle = statistics.median(speeds[way])
        print(f"stream, {way}: {middle:,.0f} messages/s, ratio {middle / base:.3f}  ({each})")


@contextlib.contextmanager
def looking(page):
    """A browser that shows the page, in a process of its own."""
    command = [sys.executable, "-c", LOOK, page.url]
    browser = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    browser.stdout.readline()
    try:
        yield
    finally:
        browser.stdin.close()
        browser.wait(timeout=30)


def server_costs(records=100_000, workers=500):
    """Time to show a batch, memory, and what readers do."""
    page, got = Page(), []
    rng = np.random.default_rng(1)
    loads = rng.integers(900, 1100, (100, workers)).tolist()
    hot = [HotKey(f"key {i}", 100 - i, 3) for i in range(8)]

    def read():
        with contextlib.suppress(OSError), urllib.request.urlopen(page.url + "events") as answer:
            got.extend(len(json.loads(line[6:])) for line in answer if line.startswith(b"data"))

    threading.Thread(target=read, daemon=True).start()
    deaf = socket.create_connection(("127.0.0.1", page.port))
    deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    process, took = psutil.Process(), np.zeros(records)
    for batch in range(records):
        busy = [0.001 * load for load in loads[batch % 100]]
        sight = Sight(
            f"q{batch % 3}", "words", "graded", batch, 1e9 + batch, 500_000, loads[batch % 100],
            busy, 1.1, 0.2, 1.3, 0.5, 1e6, hot,
        )  # fmt: skip
        start_s = time.perf_counter()
        page.show(sight)
        took[batch] = time.perf_counter() - start_s
        if batch == 5_000:
            before = process.memory_info().rss
        if batch % 100 == 0:
            time.sleep(0.005)
    grown = process.memory_info().rss - before
    took.sort()
    print(
        f"server: {records:,} batches of {workers} workers, show() median "
        f"{1e6 * took[len(took) // 2]:.0f} µs, 99.9 % {1e6 * took[-len(took) // 1000]:.0f} µs; "
        f"memory grew by {grown / 2**20:.1f} MiB after the first 5,000; "
        f"{len(got):,} messages to the reader that reads; "
        f"{len(page._server._readers)} of 2 readers left"
    )
    deaf.close()
    page.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    server_costs()
    fold_costs(given.rounds)
    stream_costs(given.rows, given.batches, given.rounds)


if __name__ == "__main__":
    main()
