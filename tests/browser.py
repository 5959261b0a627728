"""A real browser for tests of the live page, without any message in its console."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The browser's program; its absence is a failure, so that no test is left out unseen."""
    found = os.environ.get("SKEWLESS_CHROMIUM") or next(
        filter(None, map(shutil.which, PROGRAMS)), ""
    )
    if not found:
        pytest.fail(
            "Chromium is not installed: run scripts/setup.sh chromium, or apt-get install chromium."
        )
    return found


@contextmanager
def started() -> Iterator[Any]:
    """A browser that is closed in the end."""
    program = chromium()
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@contextmanager
def tab(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A tab at the page; whatever its console says is a failure.

    Browsers write there themselves that a connection was lost, which no page can help: a test that
    stops the server sets `loses_connection` on the tab.
    """
    said: list[str] = []
    context = browser.new_context(**options)
    opened = context.new_page()
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.goto(url)
    try:
        yield opened
    finally:
        context.close()
    if getattr(opened, "loses_connection", False):
        said = [text for text in said if "net::ERR_" not in text]
    assert not said, said
