"""What `skewless demo` shows, from records of batches; the demo itself runs in `make demo`."""

from types import SimpleNamespace

from rich.console import Console

from skewless.report.demo import show


def test_bars_of_all_schemes_have_one_scale(tmp_path):
    def record(loads):
        return SimpleNamespace(loads=loads, seconds=1.0, partials=2, keys=2)

    console = Console(record=True, width=100)
    seen = {"key": [record([80, 20])], "graded": [record([50, 50])]}
    show(console, seen, [("the", 3)], tmp_path)
    bars = [line.count("█") for line in console.export_text().splitlines() if "█" in line]
    assert bars == [24, 6, 15, 15]
