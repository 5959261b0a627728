"""Pictures must be readable: what is on a sheet, not how it looks."""

import pytest

from skewless.report import plots
from skewless.results import Line, Panel


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draw panels to a file; the figure that went there."""
    pyplot = plots._pyplot()
    monkeypatch.setattr(pyplot, "close", lambda figure: None)

    def draw(panels):
        plots.save(panels, "a title", tmp_path / "sheet.png")
        assert (tmp_path / "sheet.png").stat().st_size > 0
        return pyplot.gcf()

    yield draw
    monkeypatch.undo()
    pyplot.close("all")


def points(names, title="panel"):
    lines = [Line(name, [1 + i], [0.1]) for i, name in enumerate(names)]
    return Panel(title, "x", "y", lines, kind="points", log_x=True)


def test_many_series_share_one_legend_below_and_none_looks_like_another(drawn):
    names = [f"scheme {i}" for i in range(21)]
    figure = drawn([points(names), points(names, "other")])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names
    assert all(axis.get_legend() is None for axis in figure.axes)
    looks = {
        (tuple(dots.get_facecolor()[0]), dots.get_paths()[0].vertices.tobytes())
        for dots in figure.axes[0].collections
    }
    assert len(looks) == len(names)


def test_few_series_have_a_legend_in_each_panel(drawn):
    figure = drawn([points(["a", "b"]), points(["a", "c"])])
    assert not figure.legends
    shown = [[t.get_text() for t in axis.get_legend().get_texts()] for axis in figure.axes]
    assert shown == [["a", "b"], ["a", "c"]]


def test_the_even_share_is_a_line_with_a_name(drawn):
    lines = [Line("key", [0, 1], [3.0, 1.0])]
    (axis,) = drawn([Panel("loads", "worker", "messages", lines, kind="bars", even=2.0)]).axes
    assert [line.get_ydata()[0] for line in axis.get_lines()] == [2.0]
    assert "even share" in [text.get_text() for text in axis.get_legend().get_texts()]


def test_a_series_looks_the_same_in_every_panel(drawn):
    lines = {name: Line(name, [1, 2], [0.1, 0.2]) for name in ("a", "b", "c")}
    panels = [Panel("p", "x", "y", [lines[name] for name in names]) for names in ("abc", "bca")]
    first, second = (
        {line.get_label(): (line.get_color(), line.get_marker()) for line in axis.lines}
        for axis in drawn(panels).axes
    )
    assert first == second
    assert len(set(first.values())) == 3


def test_a_series_among_points_is_a_line_and_short_spans_have_plain_numbers(drawn):
    panel = points(["a", "b"])
    bound = Line("bound", [1.0, 1.0], [0.01, 1.0])
    figure = drawn([Panel("p", "x", "y", [*panel.lines, bound], kind="points", log_x=True)])
    (axis,) = figure.axes
    assert [line.get_label() for line in axis.lines] == ["bound"]
    figure.canvas.draw()
    assert "1.5" in [label.get_text() for label in axis.get_xticklabels()]
