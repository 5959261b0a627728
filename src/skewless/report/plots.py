"""Pictures: every panel of a result on one sheet, as PNG."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skewless.errors import SkewlessError
from skewless.results import Panel

# Okabe and Ito's palette: told apart by colour-blind readers too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX*"


INSIDE = 8  # entries of a legend that leave room for what it explains


def save(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Draw the panels beside each other, at most three in a row; four make a square."""
    pyplot = _pyplot()
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(4.6 * columns + 0.6, 3.6 * rows + 0.6),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    labels = dict.fromkeys(line.label for panel in panels for line in panel.lines)
    looks = {label: number for number, label in enumerate(labels)}
    for axis, panel in zip(axes.flat, panels, strict=False):
        _draw(axis, panel, looks)
    figure.suptitle("\n".join(textwrap.wrap(title, 10 + 42 * columns)))
    if _one_legend(panels):
        handles, names = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2 * columns, fontsize=8)
    else:
        for axis in axes.flat[: len(panels)]:
            axis.legend(fontsize=7)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def save_tree(nodes: Sequence[Mapping[str, Any]], title: str, path: Path) -> None:
    """Draw a tree, its leaves evenly below each other and the root on the left.

    nodes: number (`node`), `parent` (−1 for the root), `edge` and `text` of each, parents first and
        the children of a node in their order, as `DecisionTreeModel.nodes` gives them
    """
    pyplot = _pyplot()
    parents = {node["node"]: node["parent"] for node in nodes}
    inner = set(parents.values())
    depths: dict[int, int] = {}
    for node, parent in parents.items():
        depths[node] = depths.get(parent, -1) + 1
    leaves = [node for node in parents if node not in inner]
    heights = {node: -float(place) for place, node in enumerate(leaves)}
    for node in reversed(list(parents)):
        if node in inner:
            below = [heights[child] for child, parent in parents.items() if parent == node]
            heights[node] = sum(below) / len(below)
    deepest = max(depths.values())
    figure, axis = pyplot.subplots(
        figsize=(2.6 * (deepest + 1) + 1, 0.42 * len(leaves) + 1.2), layout="constrained"
    )
    for node in nodes:
        number, parent = node["node"], node["parent"]
        place = (depths[number], heights[number])
        if parent in depths:
            start = (depths[parent], heights[parent])
            axis.plot([start[0], place[0]], [start[1], place[1]], color="#999999", lw=1, zorder=1)
            middle = ((start[0] + place[0]) / 2, (start[1] + place[1]) / 2)
            axis.annotate(node["edge"], middle, fontsize=7, color="#555555", ha="center")
        colour = COLOURS[0] if number in inner else COLOURS[2]
        axis.annotate(
            node["text"], place, fontsize=8, ha="center", va="center", zorder=2,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": colour},
        )  # fmt: skip
    axis.set_xlim(-0.6, deepest + 0.6)
    axis.set_ylim(-len(leaves) + 0.3, 0.7)
    axis.set_axis_off()
    figure.suptitle(title)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _one_legend(panels: Sequence[Panel]) -> bool:
    """Whether one legend below explains all panels and they have no room for their own."""
    first, *others = [[line.label for line in panel.lines] for panel in panels]
    return len(first) > INSIDE and all(labels == first for labels in others)


def _draw(axis: Any, panel: Panel, looks: Mapping[str, int]) -> None:
    """Draw a panel; `looks` numbers the series of the whole sheet, so that each keeps its look."""
    for place, line in enumerate(panel.lines):
        look = looks[line.label]
        colour = COLOURS[look % len(COLOURS)]
        # Shifted with every round of the colours, so that no two of 64 series look alike.
        marker = MARKERS[(look + look // len(COLOURS)) % len(MARKERS)]
        if panel.kind == "bars":
            width = 0.8 / len(panel.lines)
            places = [i + (place - (len(panel.lines) - 1) / 2) * width for i in range(len(line.x))]
            axis.bar(places, line.y, width, label=line.label, color=colour)
            _name_bars(axis, [str(x) for x in line.x])
        elif panel.kind == "points" and len(line.x) == 1:
            axis.scatter(line.x, line.y, label=line.label, color=colour, marker=marker)
        elif panel.kind == "points":
            axis.plot(line.x, line.y, label=line.label, color="black", ls="--", lw=1)
        else:
            few = marker if len(line.x) <= 40 else None
            axis.plot(line.x, line.y, label=line.label, color=colour, marker=few, ms=4, lw=1.3)
    if panel.even is not None:
        axis.axhline(panel.even, label="even share", color="black", ls="--", lw=1)
    if panel.log_x:
        axis.set_xscale("log")
        _plain_if_short(axis.xaxis, axis.get_xlim())
    elif panel.kind != "bars":
        axis.ticklabel_format(axis="x", scilimits=(-3, 4))
    if panel.log_y:
        axis.set_yscale("log")
        _plain_if_short(axis.yaxis, axis.get_ylim())
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(panel.y_label)
    axis.grid(alpha=0.3)


def _name_bars(axis: Any, names: Sequence[str]) -> None:
    """At most twelve names, aslant where they would run into each other."""
    step = -(-len(names) // 12)
    shown = names[::step]
    axis.set_xticks(range(0, len(names), step), shown)
    if sum(map(len, shown)) > 40:
        axis.tick_params("x", rotation=25)
        for label in axis.get_xticklabels():
            label.set(horizontalalignment="right", rotation_mode="anchor")


def _plain_if_short(scale: Any, limits: tuple[float, float]) -> None:
    """Plain numbers on a logarithmic scale that spans too little for powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if limits[1] < 30 * limits[0]:
        scale.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        scale.set_major_formatter(StrMethodFormatter("{x:g}"))
        scale.set_minor_formatter(NullFormatter())


def check_installed() -> None:
    """Refuse to begin work whose result could not be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise SkewlessError(
            "Pictures need matplotlib: install it with pip install 'skewless[plots]'."
        )


def _pyplot() -> Any:
    check_installed()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
