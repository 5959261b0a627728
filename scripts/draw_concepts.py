"""Draw the pictures of docs/concepts.md: docs/pictures/choices.png, flow.svg and plan.svg.

python scripts/draw_concepts.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from skewless import balance
from skewless.report.plots import COLOURS

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
STREAM = "zipf:z=1.2,keys=10000,messages=1000000"
BLUE, ORANGE, GREEN = COLOURS[:3]


def choices() -> None:
    """Loads under three schemes, with the even share and the replication of each."""
    figure, panels = plt.subplots(1, 3, figsize=(9.6, 3.0), sharey=True, layout="constrained")
    for panel, scheme in zip(panels, ("key", "partial", "graded"), strict=True):
        result = balance(STREAM, scheme, workers=10, sources=5)
        shares = [load * 10 / result.messages for load in result.loads]
        panel.bar(range(10), shares, color=[ORANGE if s > 1.02 else BLUE for s in shares])
        panel.axhline(1, color="black", linestyle="--", linewidth=1, label="even share")
        panel.set_title(f"{scheme}: {result.replication:.2f} workers per key", fontsize=10)
        panel.set_xlabel("worker")
    panels[0].set_ylabel("load ÷ even share")
    panels[0].legend(fontsize=8)
    figure.savefig(PICTURES / "choices.png", dpi=110)


def box(x: int, y: int, width: int, words: str, colour: str) -> str:
    """A rounded box with words in it."""
    middle = x + width / 2
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="40" rx="6" fill="{colour}"/>'
        f'<text x="{middle}" y="{y + 25}" text-anchor="middle" fill="white">{words}</text>'
    )


def arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    """A line with a head."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#777" marker-end="url(#head)"/>'


def words(x: int, y: int, text: str) -> str:
    """A remark."""
    return f'<text x="{x}" y="{y}" text-anchor="middle" fill="#777">{text}</text>'


def svg(name: str, title: str, width: int, height: int, parts: list[str]) -> None:
    """Write the parts as one picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="14">'
        f"<title>{title}</title>"
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#777"/></marker></defs>'
    )
    (PICTURES / name).write_text("\n".join([head, *parts, "</svg>\n"]), encoding="utf-8")


def flow() -> None:
    """Sources, workers, and the merge."""
    sources, workers = (40, 120), (10, 80, 150)
    parts = [box(10, y, 110, f"source {i}", BLUE) for i, y in enumerate(sources)]
    parts += [box(270, y, 110, f"worker {i}", GREEN) for i, y in enumerate(workers)]
    parts += [arrow(120, s + 20, 268, w + 20) for s in sources for w in workers]
    parts += [box(530, 80, 110, "merge", ORANGE)]
    parts += [arrow(380, w + 20, 528, 100) for w in workers]
    parts += [words(195, 185, "route, shuffle"), words(455, 185, "partials by key")]
    svg("flow.svg", "Sources route to workers, partials are merged", 660, 200, parts)


def plan() -> None:
    """The driver's plan, the sources' reports."""
    parts = [box(250, 10, 160, "driver: plan", ORANGE)]
    places = (40, 250, 460)
    parts += [box(x, 130, 160, f"source {i}: tally", BLUE) for i, x in enumerate(places)]
    parts += [arrow(310, 50, x + 60, 128) for x in places]
    parts += [arrow(x + 100, 130, 350, 52) for x in places]
    parts += [words(120, 85, "plan, before a batch"), words(550, 85, "reports, after it")]
    svg("plan.svg", "Plans go to sources, reports come back", 660, 180, parts)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    choices()
    flow()
    plan()
