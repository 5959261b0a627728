"""A real Kafka broker on this machine: one process, the loopback interface, a temporary folder.

    with Broker() as broker:
        broker.create("words", partitions=4)
        ...  # broker.address is HOST:PORT

Its jars are fetched once into `.kafka/` at the root of the repository.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewPartitions,
    NewTopic,
)

from skewless.errors import SkewlessError
from skewless.spark.lab.jars import Packages, fetched
from skewless.spark.lab.java import java

PACKAGES = Packages("kafka-4.1.0", ("org.apache.kafka:kafka_2.13:4.1.0",), transitive=True)
KEPT = Path(__file__).parents[1] / ".kafka"
UP_S = 60.0
DOWN_S = 20.0
LOOPBACK = "127.0.0.1"


class Broker:
    """A broker that is controller as well; stopped and started again it has the same data.

    settings: further lines of server.properties
    """

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self._controller_port = _free_ports(2)

    @property
    def address(self) -> str:
        """HOST:PORT for clients; it stays the same after a restart."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The broker's process, if it runs."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> Broker:
        jars = fetched(PACKAGES, KEPT)
        self._java = [java(), "-Xmx512m", "-cp", str(jars[0].parent / "*")]
        self.folder = Path(tempfile.mkdtemp(prefix="skewless-broker-"))
        try:
            self._format()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        with (self.folder / "log.txt").open("ab") as log:
            # In a session of its own: Ctrl-C is for the show, which then stops the broker in order.
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self.folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        ends_s = time.monotonic() + UP_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > ends_s:
                raise SkewlessError(f"The broker did not start; it said: {self._said()}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End its process; the data stays. SIGKILL for a crash."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(DOWN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Make a topic; further settings with _ for dots, such as cleanup_policy="compact"."""
        dotted = {name.replace("_", "."): value for name, value in config.items()}
        admin = self._admin()  # kept: what was asked of it ends with it
        admin.create_topics([NewTopic(topic, partitions, 1, config=dotted)])[topic].result(30)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        admin = self._admin()
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Delete the messages of a partition before this offset, as retention would."""
        place, admin = TopicPartition(topic, partition, before), self._admin()
        admin.delete_records([place])[place].result(30)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})

    def _answers(self) -> bool:
        """Whether it serves topics: it listens a while before that."""
        try:
            socket.create_connection((LOOPBACK, self.port), 1).close()
            return bool(self._admin().list_topics(timeout=2).brokers)
        except (OSError, KafkaException):
            return False

    def _said(self) -> str:
        lines = (self.folder / "log.txt").read_text(errors="replace").splitlines()
        return " / ".join([line for line in lines if "ERROR" in line or "xception" in line][-2:])

    def _format(self) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.address},"
            f"CONTROLLER://{LOOPBACK}:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            **self._settings,
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        properties = self.folder / "server.properties"
        properties.write_text("".join(lines))
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Some 22 letters that begin with a dash would be taken for an option.
        command = ["kafka.tools.StorageTool", "format", f"--cluster-id=x{cluster[1:]}"]
        done = subprocess.run(
            [*self._java, *command, "-c", str(properties), "--standalone"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SkewlessError(f"The broker's folder could not be made: {done.stderr[-300:]}")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            taken = held.enter_context(socket.socket())
            taken.bind((LOOPBACK, 0))
            ports.append(taken.getsockname()[1])
        return ports
