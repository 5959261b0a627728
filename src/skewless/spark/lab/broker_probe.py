"""Is a broker there, and has it these topics? Asked in seconds, before a JVM is started.

Spark's own reader finds out too, but only after its start, and after minutes of attempts. One
request of Kafka's protocol (Metadata, version 4, which every broker since 0.11 answers and which
makes no topic) is enough, so no client library is needed. A broker that wants TLS or a login is
only connected to: its settings are for the Java client.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from skewless.errors import SkewlessError

LIMIT_S = 8.0  # for all brokers together
_CONNECT_S = 3.0
_KNOWN_S = 1.5  # a topic that was just made is not yet known to every broker
_METADATA, _VERSION, _NUMBER = 3, 4, 1
_UNKNOWN_TOPIC, _INVALID_TOPIC, _NOT_ALLOWED = 3, 17, 29
_MOST_BYTES = 64 << 20

Address = tuple[str, int]


@dataclass(frozen=True)
class Metadata:
    """What a broker says: the brokers that clients are to use, and an error code per topic."""

    brokers: list[Address]
    topics: dict[str, int]


def addresses(text: str) -> list[Address]:
    """The brokers of HOST:PORT[,HOST:PORT…]."""
    found = []
    for part in text.split(","):
        host, colon, port = part.strip().rpartition(":")
        number = int(port) if port.isascii() and port.isdigit() else 0
        if not (colon and host and 0 < number < 65536) or "//" in host:
            raise SkewlessError(
                f"A broker is HOST:PORT, several are separated by commas, and '{part.strip()}' is "
                "not one: give for example --kafka localhost:9092."
            )
        found.append((host.removeprefix("[").removesuffix("]"), number))
    return found


def check_broker(brokers: Sequence[Address], topics: Sequence[str], plain: bool = True) -> None:
    """One sentence within LIMIT_S if no broker answers, or one of the topics does not exist.

    plain: whether it can be asked without TLS and login; else it is only connected to
    """
    ends_s = time.monotonic() + LIMIT_S
    connection = _connected(brokers, ends_s)
    with connection:
        if not plain:
            return
        try:
            answer = _ask(connection, topics)
            known_s = min(ends_s, time.monotonic() + _KNOWN_S)
            while not all(_known(answer, topic) for topic in topics) and time.monotonic() < known_s:
                time.sleep(0.1)
                answer = _ask(connection, topics)
        except (OSError, struct.error, ValueError):
            host, port = connection.getpeername()[:2] if connection.fileno() >= 0 else brokers[0]
            raise SkewlessError(
                f"At {_named((host, port))} something listens that does not answer as a Kafka "
                "broker: check the port, and if it wants TLS or a login, give "
                "--kafka-option kafka.security.protocol=… and what goes with it."
            ) from None
    _check_topics(answer, topics)
    if answer.brokers:
        _check_advertised(answer.brokers, ends_s)


def _connected(brokers: Sequence[Address], ends_s: float) -> socket.socket:
    reason = "no time was left"
    for broker in brokers:
        left_s = min(_CONNECT_S, ends_s - time.monotonic())
        if left_s <= 0:
            break
        try:
            connection = socket.create_connection(broker, left_s)
        except (OSError, UnicodeError) as error:  # a name that no host can have is no text either
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            continue
        connection.settimeout(max(0.5, ends_s - time.monotonic()))
        return connection
    raise SkewlessError(
        f"No Kafka broker answers at {', '.join(map(_named, brokers))} ({reason}): start it, or "
        "check host and port."
    )


def _check_advertised(brokers: Sequence[Address], ends_s: float) -> None:
    """Clients use the addresses that brokers tell, which may be others than those given."""
    with contextlib.suppress(SkewlessError):
        _connected(brokers, ends_s).close()
        return
    raise SkewlessError(
        f"The broker tells its clients to use {', '.join(map(_named, brokers))}, which cannot be "
        "reached from here: correct its advertised.listeners, or run where they can be reached."
    )


def _check_topics(answer: Metadata, topics: Sequence[str]) -> None:
    for topic in topics:
        code = answer.topics.get(topic)
        if not _known(answer, topic):
            raise SkewlessError(
                f"The broker has no topic '{topic}': create it first, or check its name."
            )
        if code == _INVALID_TOPIC:
            raise SkewlessError(
                f"'{topic}' cannot be the name of a topic: letters, digits, '.', '_' and '-' can."
            )
        if code == _NOT_ALLOWED:
            raise SkewlessError(
                f"The broker does not allow to use the topic '{topic}': ask for access to it."
            )


def _known(answer: Metadata, topic: str) -> bool:
    return answer.topics.get(topic, _UNKNOWN_TOPIC) != _UNKNOWN_TOPIC


def _named(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _ask(connection: socket.socket, topics: Sequence[str]) -> Metadata:
    body = struct.pack(">i", len(topics)) + b"".join(map(_text, topics)) + b"\0"
    request = struct.pack(">hhi", _METADATA, _VERSION, _NUMBER) + _text("skewless") + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 4 <= size <= _MOST_BYTES:
        raise ValueError("not the size of an answer")
    reader = _Reader(_exactly(connection, size))
    if reader.number("i") != _NUMBER:
        raise ValueError("the answer to another request")
    reader.number("i")  # how long the broker wants to be left alone
    brokers = []
    for _ in range(reader.number("i")):
        reader.number("i")  # its number
        brokers.append((reader.text(), reader.number("i")))
        reader.text()  # its rack
    reader.text()  # the cluster
    reader.number("i")  # its controller
    found = {}
    for _ in range(reader.number("i")):
        code, name = reader.number("h"), reader.text()
        found[name] = code
        reader.number("b")
        for _ in range(reader.number("i")):
            reader.skip_partition()
    return Metadata(brokers, found)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ValueError("the connection was closed")
        parts += part
    return bytes(parts)


class _Reader:
    """Values from the bytes of an answer, one after the other."""

    def __init__(self, raw: bytes) -> None:
        self._raw, self._at = raw, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f">{kind}", self._raw, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(value)

    def text(self) -> str:
        size = max(0, self.number("h"))  # -1 for null
        self._at += size
        return self._raw[self._at - size : self._at].decode()

    def skip_partition(self) -> None:
        self._at += 2 + 4 + 4  # error, number, leader
        for _ in range(2):  # replicas, and those in sync
            count = self.number("i")
            self._at += 4 * count
