"""Serves the page to browsers on this machine, and pushes to them what changes.

The standard library's server, a thread per connection: a page has a handful of readers, and there
is nothing here that a framework would make shorter or safer. Connections are few and bounded,
reading a request and writing an answer have a time limit, and each reader is sent what is newest
when it is ready for more.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib import resources
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from skewless.errors import SkewlessError
from skewless.live.history import History

LOOPBACK = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost")  # by any other a page of a stranger could reach us
CONNECTIONS = 32
PATIENCE_S = 10.0  # for a request to come and for an answer to be taken
PACE_S = 0.1  # between two messages to a reader
UNREAD_BYTES = 1 << 18  # that the system holds for a reader, before it counts as slow
BEAT_S = 5.0  # after which a silent connection is tried
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",
}


class Server(ThreadingMixIn, TCPServer):
    """Answers on the loopback interface until it is closed."""

    allow_reuse_address = True  # a restart must not wait for connections that ended
    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, port: int, history: History) -> None:
        self.history = history
        assets = resources.files("skewless.live") / "assets"
        self.files = {
            path: ((assets / name).read_bytes(), kind) for path, (name, kind) in FILES.items()
        }
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._readers: set[threading.Thread] = set()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SkewlessError(
                f"The live page cannot be served on {LOOPBACK}:{port} ({error}): "
                "give another port, or 0 for a free one."
            ) from None
        self.port: int = self.server_address[1]
        self._thread = threading.Thread(
            target=self.serve_forever,
            kwargs={"poll_interval": 0.2},
            daemon=True,
            name="skewless-live",
        )
        self._thread.start()

    def close(self) -> None:
        """Let readers have the last word of the history, and stop."""
        self.history.close()
        self.shutdown()
        self.server_close()
        self._thread.join()
        ends_s = time.monotonic() + 1.0
        for reader in list(self._readers):
            reader.join(max(0.0, ends_s - time.monotonic()))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection, in a thread of its own."""
        self._readers.add(threading.current_thread())
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._readers.discard(threading.current_thread())
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away or was too slow is no error; nothing here may reach a job."""
        logging.getLogger(__name__).debug("A reader of the live page was lost.", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = PATIENCE_S
    server_version = "skewless"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A file of the page, or its stream of events."""
        self.close_connection = True
        path = self.path.split("?", 1)[0]
        if not self._is_for_us():
            self._answer(
                HTTPStatus.FORBIDDEN, b"This page is served as 127.0.0.1 or localhost only."
            )
        elif path == "/events":
            self._push()
        elif path in self.server.files:
            content, kind = self.server.files[path]
            self._answer(HTTPStatus.OK, content, kind)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.")

    def _is_for_us(self) -> bool:
        """Is the request for this machine by its own name, and not from a page of another site?

        The port is not looked at: an SSH tunnel may have another one at its end.
        """
        hosts = self.headers.get_all("Host") or []
        named = len(hosts) == 1 and hosts[0].rsplit(":", 1)[0].lower() in NAMES
        site = self.headers.get("Sec-Fetch-Site", "none")
        opened = self.headers.get("Sec-Fetch-Mode") == "navigate"
        return named and (opened or site in ("none", "same-origin"))

    def _push(self) -> None:
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD_BYTES)
        self._head(HTTPStatus.OK, "text/event-stream; charset=utf-8")
        history, seen, goes_on = self.server.history, 0, True
        while goes_on:
            version, message = history.since(seen)
            self.wfile.write(event(message) if version > seen else b": still here\n\n")
            seen = version
            time.sleep(PACE_S)
            goes_on = history.wait(seen, BEAT_S)
        self.wfile.write(event(history.since(seen)[1]))

    def _answer(
        self, status: HTTPStatus, content: bytes, kind: str = "text/plain; charset=utf-8"
    ) -> None:
        self._head(status, kind, len(content))
        self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a job's terminal is not for this."""


def event(message: dict[str, Any]) -> bytes:
    """A message as a server-sent event; JSON in ASCII has no line break in it."""
    text = json.dumps(message, separators=(",", ":"), allow_nan=False)
    return f"data: {text}\n\n".encode("ascii")
