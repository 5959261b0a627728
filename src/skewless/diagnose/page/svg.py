"""Plots as SVG: bars of shares, loads of workers, tasks on a time line."""

from __future__ import annotations

from collections.abc import Sequence

from skewless.diagnose.event_log.stages import DrawnTask
from skewless.diagnose.page.page import text
from skewless.diagnose.units import duration, percent, times

_LANE, _WIDTH = 22, 440
_LABEL = 130


def shares(rows: Sequence[tuple[str, float, float]]) -> str:
    """A bar per key: name, share, error."""
    most = max((share + error for _, share, error in rows), default=0) or 1.0
    room = _WIDTH - _LABEL - 120
    parts = []
    for number, (name, share, error) in enumerate(rows):
        y = number * _LANE
        shown = name if len(name) <= 18 else name[:17] + "…"
        width = room * share / most
        low, high = (room * max(0.0, share + sign * error) / most for sign in (-1, 1))
        label = percent(share) + (f" ± {percent(error)}" if error else "")
        parts.append(
            f'<g><title>{text(name)}</title><text x="{_LABEL - 8}" y="{y + 15}" '
            f'text-anchor="end">{text(shown)}</text>'
            f'<rect x="{_LABEL}" y="{y + 4}" width="{width:.1f}" height="14" fill="var(--bar)"/>'
        )
        if error:
            parts.append(
                f'<path d="M{_LABEL + low:.1f} {y + 11}H{_LABEL + high:.1f}" '
                'stroke="var(--ink)" stroke-width="1.5"/>'
            )
        parts.append(
            f'<text x="{_LABEL + high + 6:.1f}" y="{y + 15}" class="soft">{label}</text></g>'
        )
    return _svg(_WIDTH, len(rows) * _LANE + 4, "share of the hottest keys", parts)


def loads(shares_of_workers: Sequence[float], most: float) -> str:
    """A bar per worker in multiples of an even share; the dashed line is an even share.

    most: the top of the scale, the same for all candidates
    """
    width, height = 340.0, 120.0
    ordered = list(shares_of_workers)
    count = len(ordered)
    if count > 170:  # one bar per pixel pair at most: the fullest of each run of workers stands
        step = -(-count // 170)
        ordered = [max(ordered[i : i + step]) for i in range(0, count, step)]
    each = width / len(ordered)
    parts = []
    for number, share in enumerate(ordered):
        ratio = share * count
        tall = (height - 6) * min(ratio / most, 1.0)
        colour = "var(--hot)" if ratio > 1.2 else "var(--bar)"
        parts.append(
            f'<rect x="{number * each + each * 0.08:.1f}" y="{height - tall:.1f}" '
            f'width="{each * 0.84:.1f}" height="{tall:.1f}" fill="{colour}">'
            f"<title>{times(ratio)} × an even share</title></rect>"
        )
    line = height - (height - 6) / most
    parts.append(
        f'<path d="M0 {line:.1f}H{width}" stroke="var(--mark)" stroke-width="1.5" '
        'stroke-dasharray="5 4"/>'
    )
    return _svg(width, height, "load of each worker", parts)


def timeline(tasks: Sequence[DrawnTask], even_s: float) -> str:
    """Tasks in the order of their start, the straggler marked; the line is when even work ends."""
    if not tasks:
        return ""
    width = 1000.0
    end_s = max(task.end_s for task in tasks) or 0.001
    each = max(1.0, min(14.0, 300 / len(tasks)))
    straggler = max(range(len(tasks)), key=lambda i: tasks[i].end_s - tasks[i].start_s)
    scale, height = width / end_s, each * len(tasks)
    parts = []
    for number, task in enumerate(tasks):
        colour = "var(--hot)" if number == straggler else "var(--bar)"
        thick = max(each * 0.82, 3.0 if number == straggler else 0.8)
        parts.append(
            f'<rect x="{task.start_s * scale:.1f}" y="{number * each:.1f}" '
            f'width="{max((task.end_s - task.start_s) * scale, 1.5):.1f}" '
            f'height="{thick:.1f}" fill="{colour}"><title>task '
            f"{task.partition}: {duration(task.end_s - task.start_s)}, "
            f"{task.records:,} records</title></rect>"
        )
    even = min(even_s, end_s) * scale
    parts.append(
        f'<path d="M{even:.1f} 0V{height:.1f}" stroke="var(--mark)" stroke-width="1.5" '
        'stroke-dasharray="5 4" vector-effect="non-scaling-stroke"/>'
    )
    # Stretched to the page's width, with the words outside, so that they keep their size.
    picture = (
        f'<svg class="wide" viewBox="0 0 {width:g} {height:g}" height="{height:g}" '
        'preserveAspectRatio="none" style="height:'
        f'{height:g}px" role="img" aria-label="tasks in the order of their start">'
        f"{''.join(parts)}</svg>"
    )
    return (
        f'{picture}<div class="axis"><span>0</span><span>dashed: even work, {duration(even_s)}'
        f"</span><span>{duration(end_s)}</span></div>"
    )


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{text(label)}">{"".join(parts)}</svg>'
    )
