"""The same tests on a local Spark Connect server, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import ON_CONNECT

HERE = Path(__file__).parent


@pytest.mark.timeout(5400)
@pytest.mark.skipif(ON_CONNECT, reason="this is the process that runs on Connect")
def test_routing_grouping_and_observing_pass_on_spark_connect():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "connect",
         "--timeout=1800", str(HERE)],
        cwd=HERE.parents[1],
        env={**os.environ, "SKEWLESS_CONNECT": "1"},
        capture_output=True,
        text=True,
        timeout=5300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\b\d\d+ passed", done.stdout), done.stdout[-4000:]
