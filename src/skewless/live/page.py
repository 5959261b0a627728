"""One page that any number of queries and observers appear on."""

from __future__ import annotations

import threading
from typing import Any

from skewless.errors import SkewlessError
from skewless.live.history import History, Sight
from skewless.live.server import LOOPBACK, Server


def check_port(what: str, port: Any) -> None:
    """Refuse what is no port."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise SkewlessError(
            f"{what} is a whole number from 0, which takes a free one, to 65535, not {port!r}."
        )


class Page:
    """A live page on 127.0.0.1, to hand to several observers: `Observer(page=page)`.

    port: where it is served; 0 takes a free one
    """

    def __init__(self, port: int = 0) -> None:
        check_port("The port of a live page", port)
        self._history = History()
        self._server = Server(port, self._history)
        self._closed = False

    @property
    def port(self) -> int:
        """Where the page is served."""
        return self._server.port

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{LOOPBACK}:{self.port}/"

    def show(self, sight: Sight) -> None:
        """Show what a batch showed; returns at once, whoever is looking."""
        self._history.show(sight)

    def tell(self, query: str, state: str, why: str | None = None) -> None:
        """Show the state of a query: running, waiting, ended, or failed and why."""
        self._history.tell(query, state, why)

    def close(self) -> None:
        """Stop serving. Browsers keep what they have, and wait for a page at this address."""
        if not self._closed:
            self._closed = True
            self._server.close()


_SHARED: dict[int, tuple[Page, int]] = {}  # by port: pages of this process, and how many use them
_SHARING = threading.Lock()


def borrowed(port: int) -> Page:
    """The page that this process serves at the port, opened if there is none; 0 opens one."""
    with _SHARING:
        page, users = _SHARED.get(port, (None, 0))
        page = page or Page(port)
        _SHARED[page.port] = page, users + 1
        return page


def given_back(page: Page) -> None:
    """The page is not needed any more by one who borrowed it: closed after the last."""
    with _SHARING:
        _, users = _SHARED.pop(page.port, (page, 1))
        if users > 1:
            _SHARED[page.port] = page, users - 1
            return
    page.close()
