"""The Grafana dashboard and the documentation name metrics that the endpoint serves, and all."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path

import pytest

from skewless.spark import Observer
from skewless.spark.observe.observer import make_record
from skewless.spark.report.task import WorkerReport

DOCS = Path(__file__).parents[2] / "docs"
METRIC = re.compile(r"\bskewless_\w+")
LABEL = re.compile(r"\{(\w+)(?:\}\}|=~)")
GROUPED_BY = re.compile(r"by \(([^)]*)\)")


@pytest.fixture(scope="module")
def served():
    """Every metric of the endpoint, and its text after two batches."""
    observer = Observer(port=0)
    try:
        for batch in range(2):
            seen = [WorkerReport(i, 0, 30 - 10 * i, 2, 0, 0.5, 0.0, 1.0) for i in range(2)]
            observer.add(make_record("graded", 2, "run", batch, seen, 3, 0.5))
        with urllib.request.urlopen(
            f"http://127.0.0.1:{observer.port}/metrics", timeout=60
        ) as text:
            lines = text.read().decode().splitlines()
    finally:
        observer.close()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in values.items()}


def names(served):
    found = {series.split("{")[0] for series in served}
    return {name for name in found if not name.endswith("_created")}


def test_every_metric_in_the_dashboard_is_served_and_every_one_served_is_in_it(served):
    dashboard = json.loads((DOCS / "grafana.json").read_text())
    asked = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            used = METRIC.findall(target["expr"])
            assert used, target["expr"]
            asked.update(used)
    for variable in dashboard["templating"]["list"]:
        asked.update(METRIC.findall(json.dumps(variable)))
    assert asked == names(served)


def test_the_documentation_names_them_all_and_no_other(served):
    assert set(METRIC.findall((DOCS / "live.md").read_text())) == names(served)


def test_the_labels_that_the_dashboard_groups_by_are_served(served):
    dashboard = json.loads((DOCS / "grafana.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    for target in targets:
        words = target["expr"] + target["legendFormat"]
        wanted = set(LABEL.findall(words))
        wanted.update(*(named.split(", ") for named in GROUPED_BY.findall(words)))
        assert "scheme" in wanted
        series = [s for s in served if s.split("{")[0] in METRIC.findall(target["expr"])]
        assert all(f'{label}="' in s for label in wanted for s in series)


def test_max_over_mean_is_what_it_says(served):
    assert served['skewless_max_over_mean{scheme="graded"}'] == pytest.approx(30 / 25)


def test_the_panels_of_the_dashboard_do_not_overlap():
    panels = json.loads((DOCS / "grafana.json").read_text())["panels"]
    taken = [
        (x, y)
        for box in (panel["gridPos"] for panel in panels)
        for x in range(box["x"], box["x"] + box["w"])
        for y in range(box["y"], box["y"] + box["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
