"""Moves of a partition between log directories of a broker, which librdkafka has no call for.

Source: Kafka, AlterReplicaLogDirsRequest.json (key 34, version 1), BrokerConfigHandler.
"""

import struct
import time
from pathlib import Path

from confluent_kafka.admin import ResourceType

from tests.broker import clients, requests

KEY, VERSION = 34, 1
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


class MoveError(Exception):
    """The broker did not take the order, or did not do it in time."""


def throttle(bootstrap: str, bytes_per_second: int) -> None:
    """How fast the broker with id 1 copies between its log directories from now on."""
    clients.alter(bootstrap, "1", {THROTTLE: str(bytes_per_second)}, ResourceType.BROKER)


def begin_move(port: int, topic: str, partition: int, to: Path) -> None:
    """Order it; the broker copies in the background."""
    body = struct.pack(">i", 1) + requests.string(str(to))
    body += struct.pack(">i", 1) + requests.string(topic) + struct.pack(">ii", 1, partition)
    told = requests.answer(port, KEY, VERSION, body)
    (error,) = struct.unpack(">h", told[-2:])  # the last field of the only partition
    if error:
        raise MoveError(f"{topic}-{partition} to {to}: error {error}")


def future_of(log_dir: Path, name: str) -> Path | None:
    """The copy of a partition in the log directory that it is being moved to."""
    return next(iter(log_dir.glob(f"{name}.*-future")), None)


def wait_for_copied_bytes(log_dir: Path, name: str) -> None:
    """Until something of the partition has arrived in its copy."""
    deadline = time.monotonic() + clients.SECONDS
    while time.monotonic() < deadline:
        future = future_of(log_dir, name)
        if future is not None and any(log.stat().st_size for log in future.glob("*.log")):
            return
        time.sleep(0.05)
    raise MoveError(f"nothing of {name} arrives in {log_dir}")


def wait_for_end_of_move(log_dir: Path, name: str) -> None:
    """Until the copy has taken the place of the partition."""
    deadline = time.monotonic() + clients.SECONDS
    while time.monotonic() < deadline:
        if (log_dir / name).is_dir() and future_of(log_dir, name) is None:
            return
        time.sleep(0.1)
    raise MoveError(f"{name} does not come to stand in {log_dir}")
