"""Figures as people read them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Seconds in the two largest units that matter.

    >>> duration(372.4), duration(7.04), duration(0.0123), duration(7321)
    ('6 min 12 s', '7.0 s', '12 ms', '2 h 2 min')
    """
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def percent(share: float) -> str:
    """A share in per cent, with three figures at most.

    >>> percent(0.4149), percent(0.00123), percent(0.9999), percent(12.5)
    ('41.5 %', '0.123 %', '100 %', '1,250 %')
    """
    value = 100 * share
    return f"{value:.3g} %" if value < 99.95 else f"{value:,.0f} %"


def counted(number: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "stage"), counted(2500, "stage")
    ('1 stage', '2,500 stages')
    """
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def printable(value: object) -> str:
    """Text of strangers on one line, without what a terminal or a browser would act upon."""
    line = " ".join(str(value).split())
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def times(ratio: float) -> str:
    """A ratio.

    >>> times(3.4567), times(12.34)
    ('3.46', '12.3')
    """
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.1f}"


def size(count: float) -> str:
    """Bytes.

    >>> size(0), size(1536), size(3 * 2**30)
    ('0 B', '1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
