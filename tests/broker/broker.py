"""Apache Kafka's own broker on loopback: KRaft, its jars fetched as the oracle's are.

Logs are under `home/data`, what the broker says is in `home/broker.log`. The settings are written
anew by each start. Its own log cleaner is off unless a start turns it on.
"""

import os
import re
import socket
import struct
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.oracle import jars, versions

POM = Path(__file__).with_name("pom.xml")
START_SECONDS = STOP_SECONDS = 180
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:{port}",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:{controller}",
    "log.dirs": "data",  # the broker's working directory is its home
    "log.cleaner.enable": "false",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.segment.bytes": "1048576",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "2",
}
_WORTH_TELLING = re.compile(r" (WARN|ERROR|FATAL) ")
_TIMED = re.compile(r"\d\d:\d\d:\d\d\.\d{3} \[")
_OF_A_BUSY_MACHINE = re.compile(
    r"[^\n]* ERROR kafka\.server\.ControllerApis - [^\n]*Unexpected error handling request [^\n]*\n"
    r"(\S*CompletionException: )?"
    r"org\.apache\.kafka\.common\.errors\.(TimeoutException|NotControllerException)\b"
)


class BrokerError(Exception):
    """The broker did not do as it was told; the message ends with what it said."""


class Broker:
    """A broker and its home directory. At most one process of it runs, on the same ports always."""

    def __init__(
        self, home: Path, cluster_id: str | None = None, kafka: str = versions.DEFAULT
    ) -> None:
        """cluster_id: of the brokers that it works with; without one it is alone.

        kafka: of which release it is, as the oracle names it. Another may stand between two starts.
        """
        self.kafka = kafka
        self._cluster_id = new_cluster_id() if cluster_id is None else cluster_id
        self.home, self.data, self.log = home, home / "data", home / "broker.log"
        self.port, self.controller = _free_ports()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._said_before = 0  # bytes of the log when the last start began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def processor_seconds(self) -> float:
        """What the process that runs has used so far."""
        assert self._process is not None, "it does not run"
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Return when it answers; raise BrokerError when it ends or does not."""
        assert self._process is None, "it runs already"
        dirs = [
            self.home / name for name in {**SETTINGS, **(settings or {})}["log.dirs"].split(",")
        ]
        for path in dirs:
            path.mkdir(parents=True, exist_ok=True)
        self.log.touch()
        self._said_before = self.log.stat().st_size
        properties = self._write_properties(settings or {})
        if not all((path / "meta.properties").exists() for path in dirs):
            self._format(properties)
        self._process = self._run("kafka.Kafka", properties)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            status = self._process.poll()
            if status is None and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            self.kill()
            ended = f"ended with {status}" if status is not None else "did not answer in time"
            raise BrokerError(f"the broker {ended}:\n{self._end_of_log()}")

    def stop(self) -> None:
        """Stop it as an operator does, and see that it stopped cleanly."""
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise BrokerError(f"the broker does not stop:\n{self._end_of_log()}") from error
        self._process = None
        if not (self.data / CLEAN_SHUTDOWN).exists():
            raise BrokerError(f"no {CLEAN_SHUTDOWN} after a stop:\n{self._end_of_log()}")

    def has_ended(self) -> bool:
        """Whether its process came to its end by itself."""
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def tool(self, main: str, *arguments: str) -> None:
        """Run one of Kafka's own tools against it; BrokerError if that fails."""
        if self._run(main, "--bootstrap-server", self.bootstrap, *arguments).wait(STOP_SECONDS):
            raise BrokerError(f"{main} {' '.join(arguments)}:\n{self._end_of_log()}")

    def said(self) -> list[str]:
        """The lines of its log since the last start began."""
        with self.log.open("rb") as log:
            log.seek(self._said_before)
            return log.read().decode(errors="replace").splitlines()

    def complaints(self) -> list[str]:
        """Return the first lines of the warnings and errors since the last start began, but those
        of `entries_in`."""
        return [entry[0] for entry in entries_in(self.said()) if _WORTH_TELLING.search(entry[0])]

    def errors(self) -> list[str]:
        """The errors since the last start began, each with its stack; see `errors_in`."""
        return errors_in(self.said())

    def _write_properties(self, settings: Mapping[str, str]) -> Path:
        ports = {"port": self.port, "controller": self.controller}
        values = {name: value.format(**ports) for name, value in SETTINGS.items()} | dict(settings)
        path = self.home / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        return path

    def _format(self, properties: Path) -> None:
        tool = "kafka.tools.StorageTool"
        if self._run(tool, "format", "-g", "-t", self._cluster_id, "-c", properties).wait():
            raise BrokerError(f"formatting failed:\n{self._end_of_log()}")

    def _run(self, main: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        class_path = f"{jars.fetched(POM, versions.VERSIONS[self.kafka].release)}/*"
        command = [jars.tool("java"), *JAVA_OPTIONS, "-cp", class_path, main, *map(str, arguments)]
        with self.log.open("ab") as out:
            return subprocess.Popen(
                command,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,  # Ctrl-C is for the tests, which end it themselves
            )

    def _end_of_log(self) -> str:
        return "\n".join([*self.complaints()[:10], "…", *self.said()[-10:]])


def entries_in(lines: Sequence[str]) -> list[list[str]]:
    """Split a broker's log into its entries, each with the lines of its stack.

    Not among them is a request to the controller that ran into its timeout, or came before there
    was a controller: that happens on a busy machine, touches no log directory, and is tried again.
    """
    entries: list[list[str]] = []
    for line in lines:
        if _TIMED.match(line) or not entries:
            entries.append([])
        entries[-1].append(line)
    return [entry for entry in entries if not _OF_A_BUSY_MACHINE.match("\n".join(entry))]


def errors_in(lines: Sequence[str]) -> list[str]:
    """Return the errors of a broker's log, each with the lines of its stack; see `entries_in`."""
    return ["\n".join(entry) for entry in entries_in(lines) if " ERROR " in entry[0]]


def new_cluster_id() -> str:
    return urlsafe_b64encode(b"\x01" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


def _answers(port: int) -> bool:
    """Ask for metadata (api 3, version 1, no topics): ready when the reply names a broker."""
    body = struct.pack(">hhihi", 3, 1, 1, -1, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(body)) + body)
            with connection.makefile("rb") as reply:
                head = reply.read(12)  # length, correlation id, count of brokers
    except OSError:
        return False
    return len(head) == 12 and struct.unpack(">iii", head)[2] >= 1
