"""Takes a picture of a live page with a real browser.

    python show/picture.py URL FILE [--width 1440] [--height 900] [--dark] [--wait 2]

The picture is a PNG of the page as it is after the given seconds, down to the height. If it is
larger than the given size, its colours are reduced to 256, which a page of this kind does not show.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def take(
    url: str, width: int = 1440, height: int = 900, dark: bool = False, wait_s: float = 2
) -> bytes:
    """The page at the URL as a PNG."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("SKEWLESS_CHROMIUM") or next(
        filter(None, map(shutil.which, PROGRAMS)), ""
    )
    if not found:
        sys.exit("Chromium is not installed: run scripts/setup.sh chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
        )
        page.goto(url)
        page.wait_for_selector(".card", timeout=30_000)
        page.wait_for_timeout(1000 * wait_s)
        picture = page.screenshot()
        browser.close()
    return picture


def smaller(picture: bytes) -> bytes:
    """The same with 256 colours."""
    from PIL import Image

    out = io.BytesIO()
    reduced = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    """Parse, take, write."""
    parser = argparse.ArgumentParser(description="Take a picture of a live page.")
    parser.add_argument("url")
    parser.add_argument("file", type=Path)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--wait", type=float, default=2.0)
    parser.add_argument("--most-kb", type=int, default=200)
    given = parser.parse_args()
    picture = take(given.url, given.width, given.height, given.dark, given.wait)
    if len(picture) > 1000 * given.most_kb:
        picture = smaller(picture)
    given.file.write_bytes(picture)
    print(f"{given.file}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
