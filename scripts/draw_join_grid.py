"""Draw docs/join-grid.png: the grid of one hot key, and where its cells go.

python scripts/draw_join_grid.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

LEFT, RIGHT = 3, 2
PLACES = ((5, 0), (3, 6), (1, 4))  # partition of each cell
BLUE, ORANGE, GREY = "#4477aa", "#ee8866", "#666666"


def main() -> None:
    """Left rows as stripes, right rows as columns, cells with their partitions."""
    figure, axes = plt.subplots(figsize=(8.2, 4.0))
    for i in range(LEFT):
        y = LEFT - 1 - i
        axes.add_patch(Rectangle((-2.3, y + 0.1), 1.7, 0.8, color=BLUE, alpha=0.75))
        axes.text(-1.45, y + 0.5, f"stripe {i}", ha="center", va="center", color="white")
        arrow = {"arrowstyle": "->", "color": BLUE, "lw": 1.6}
        axes.annotate("", (-0.03, y + 0.5), (-0.58, y + 0.5), arrowprops=arrow)
        for j in range(RIGHT):
            x = 1.9 * j
            axes.add_patch(Rectangle((x, y), 1.9, 1, facecolor="#f4f4f4", edgecolor=GREY, lw=1.2))
            words = f"cell {i * RIGHT + j}\n→ partition {PLACES[i][j]}"
            axes.text(x + 0.95, y + 0.5, words, ha="center", va="center", fontsize=10)
    for j in range(RIGHT):
        x = 1.9 * j
        axes.add_patch(Rectangle((x + 0.15, 3.65), 1.6, 0.6, color=ORANGE, alpha=0.85))
        axes.text(x + 0.95, 3.95, f"stripe {j}", ha="center", va="center", color="white")
        arrow = {"arrowstyle": "->", "color": ORANGE, "lw": 1.6}
        axes.annotate("", (x + 0.95, 3.03), (x + 0.95, 3.62), arrowprops=arrow)
    axes.text(-1.45, 3.2, "left rows, a = 3\neach in 2 cells", ha="center", color=BLUE)
    axes.text(1.9, 4.4, "right rows, b = 2: each in 3 cells", ha="center", color=ORANGE)
    note = "every left row meets\nevery right row\nin exactly one cell"
    axes.text(4.1, 1.5, note, va="center", color=GREY)
    axes.set(xlim=(-2.5, 6.2), ylim=(-0.1, 4.9))
    axes.axis("off")
    path = Path(__file__).parents[1] / "docs" / "join-grid.png"
    figure.savefig(path, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
