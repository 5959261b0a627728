"""The newest record for Prometheus, on the loopback interface only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewless.errors import SkewlessError
from skewless.live.page import check_port
from skewless.live.server import NAMES

if TYPE_CHECKING:
    from skewless.spark.observe.observer import Record

_LOOPBACK = "127.0.0.1"
_GAUGES = {
    "max_over_mean": "Load of the busiest worker / mean of the loads of the newest batch",
    "imbalance": "(max - mean) / total of the loads of the newest batch",
    "stddev": "Standard deviation of the loads, in messages",
    "stddev_percent": "Standard deviation of the loads in per cent of their total",
    "replication": "Workers per key",
    "seconds": "How long the newest batch took",
    "messages_per_second": "Throughput of the newest batch",
}


def _by_own_name(app: Any) -> Any:
    """The same for requests by the machine's own name: no other site reaches it by one of its."""

    def answer(environ: Any, start: Any) -> Any:
        if environ.get("HTTP_HOST", "").rsplit(":", 1)[0].lower() in NAMES:
            return app(environ, start)
        start("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"This is served as 127.0.0.1 or localhost only."]

    return answer


class Endpoint:
    """Gauges of the newest record per scheme, and counters of messages per worker."""

    def __init__(self, port: int) -> None:
        check_port("The port for Prometheus", port)
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise SkewlessError(
                "prometheus-client is not installed: install skewless with its extra, "
                "skewless[spark]."
            ) from None
        registry = prometheus.CollectorRegistry()
        self._gauges = {
            name: prometheus.Gauge(f"skewless_{name}", text, ["scheme"], registry=registry)
            for name, text in _GAUGES.items()
        }
        self._messages: Any = prometheus.Counter(
            "skewless_messages", "Messages per worker", ["scheme", "worker"], registry=registry
        )
        self._busy_s: Any = prometheus.Counter(
            "skewless_busy_seconds", "Work per worker", ["scheme", "worker"], registry=registry
        )
        try:
            server, thread = prometheus.start_http_server(port, _LOOPBACK, registry)
        except OSError as error:
            raise SkewlessError(
                f"Prometheus cannot be served on {_LOOPBACK}:{port} ({error}): "
                "give another port, or 0 for a free one."
            ) from None
        server.set_app(_by_own_name(server.get_app()))
        self._server, self._thread = server, thread
        self.port: int = server.server_port

    def show(self, record: Record) -> None:
        """Serve this record from now on."""
        for name, gauge in self._gauges.items():
            value = getattr(record, name)
            if value is not None:
                gauge.labels(record.scheme).set(value)
        for worker, (load, busy_s) in enumerate(zip(record.loads, record.busy_s, strict=True)):
            self._messages.labels(record.scheme, worker).inc(load)
            self._busy_s.labels(record.scheme, worker).inc(busy_s)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
