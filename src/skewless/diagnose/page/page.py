"""The frame of a page, its style, and the few elements that all pages are made of.

Text comes in through `text` only, so that a key with markup in it shows as it is. No script, no
network: a page can be mailed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from skewless.diagnose.units import printable
from skewless.errors import SkewlessError

STYLE = """
.skewless{--ink:#1c2430;--soft:#5b6675;--line:#d8dee6;--back:#ffffff;--card:#f5f7fa;--bar:#2f6fb0;
--hot:#c8431f;--good:#2c8a57;--mark:#8894a3;color:var(--ink);background:var(--back);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;margin:0;padding:24px;
box-sizing:border-box;max-width:1160px}
@media (prefers-color-scheme:dark){.skewless{--ink:#e4e9f0;--soft:#9aa7b8;--line:#36404d;
--back:#14181e;--card:#1d232c;--bar:#5b9bd8;--hot:#f07a55;--good:#58b98a;--mark:#7b8796}}
.skewless h1{font-size:22px;margin:0 0 4px;overflow-wrap:anywhere}
.skewless h2{font-size:17px;margin:28px 0 8px}
.skewless p{margin:6px 0}.skewless .soft{color:var(--soft)}
.skewless .verdict{background:var(--card);border-left:4px solid var(--bar);padding:12px 16px;
margin:16px 0;font-size:16px;overflow-wrap:anywhere}
.skewless pre{background:var(--card);padding:12px 16px;overflow-x:auto;font-size:13px;
line-height:1.45;text-align:left}
.skewless .scroll{overflow-x:auto}
.skewless table{border-collapse:collapse;font-size:14px;color:var(--ink);background:var(--back)}
.skewless th,.skewless td{padding:5px 12px 5px 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line);background:var(--back)}
.skewless th{font-weight:600;color:var(--soft);white-space:nowrap}
.skewless td.number,.skewless th.number{text-align:right;font-variant-numeric:tabular-nums;
white-space:nowrap}
.skewless td.words{min-width:120px;max-width:380px;overflow-wrap:anywhere}
.skewless td.name{white-space:nowrap}
.skewless tr.chosen td{font-weight:600}.skewless .hot{color:var(--hot)}
.skewless svg{display:block;max-width:100%;height:auto}
.skewless svg text{fill:var(--ink);font:12px system-ui,-apple-system,"Segoe UI",sans-serif}
.skewless svg text.soft{fill:var(--soft)}
.skewless .plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));
gap:18px}
.skewless svg.wide{width:100%}.skewless .axis{display:flex;justify-content:space-between;
font-size:12px;color:var(--soft)}
.skewless figure{margin:0}.skewless figcaption{font-size:13px;color:var(--soft);
overflow-wrap:anywhere}
.skewless summary{cursor:pointer;overflow-wrap:anywhere;padding:4px 0}
@media (max-width:560px){.skewless{padding:14px}}
"""


def text(value: object) -> str:
    """Any value as text inside HTML or an attribute, on one line, without control characters."""
    return escape(printable(value))


def fragment(body: str) -> str:
    """A part of a page, for a notebook."""
    return f'<style>{STYLE}</style><div class="skewless">{body}</div>'


def document(title: str, body: str) -> str:
    """A whole page."""
    frame = "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#14181e}}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title)}</title>\n<style>{frame}body{{margin:0}}{STYLE}</style></head>\n"
        f'<body><main class="skewless" style="margin:0 auto">{body}</main></body></html>\n'
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], chosen: int | None = None) -> str:
    """Cells of ready HTML; a heading that begins with # is of numbers, one with ~ of long text."""
    classes = {"#": "number", "~": "words"}
    kinds = [f' class="{classes.get(h[:1], "name")}"' for h in headings]
    parts = ['<div class="scroll"><table><thead><tr>']
    parts += [f"<th{k}>{text(h.lstrip('#~'))}</th>" for h, k in zip(headings, kinds, strict=True)]
    parts.append("</tr></thead><tbody>")
    for number, row in enumerate(rows):
        parts.append('<tr class="chosen">' if number == chosen else "<tr>")
        parts += [f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True)]
        parts.append("</tr>")
    return "".join([*parts, "</tbody></table></div>"])


def code(lines: str) -> str:
    """Code to paste, line by line as it is."""
    return f"<pre>{escape(lines)}</pre>" if lines else ""


def notes(lines: Iterable[str]) -> str:
    """Remarks in small."""
    return "".join(f'<p class="soft">{text(line)}</p>' for line in lines)


def check_page(path: Path) -> None:
    """Refuse what can be no page, before the work."""
    if not path.name or path.is_dir():
        raise SkewlessError(f"The page '{path}' is a folder: give the name of a file.")


def write_page(path: Path, page: str) -> None:
    """Write a page whole, or say in one sentence why not."""
    half = path.with_name(path.name + ".part")
    try:
        half.write_text(page, encoding="utf-8", errors="replace")
        os.replace(half, path)
    except OSError as error:
        raise SkewlessError(
            f"The page '{path}' cannot be written ({error.strerror}): give another file."
        ) from error
