"""Marker of a clean shutdown (`.kafka_cleanshutdown`): the broker stopped in good order.

A JSON object, `{"version":0,"brokerEpoch":<long>}`; older brokers leave an empty file. That it is
there is what counts: a broker then trusts the indexes. Source: Kafka, CleanShutdownFileHandler;
spec F-15.2.
"""

import json
import os

from storage.files.files import Files
from storage.files.local import LOCAL

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
VERSION = 0
NO_BROKER_EPOCH = -1  # on disk only


def decode(data: bytes) -> int | None:
    """Give the broker epoch; None where there is none to read, which Kafka does not mind either."""
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    epoch = fields.get("brokerEpoch") if isinstance(fields, dict) else None
    return epoch if isinstance(epoch, int) and epoch != NO_BROKER_EPOCH else None


def encode(broker_epoch: int | None = None) -> bytes:
    """Lay the marker out as a broker of today does."""
    epoch = NO_BROKER_EPOCH if broker_epoch is None else broker_epoch
    return json.dumps({"version": VERSION, "brokerEpoch": epoch}, separators=(",", ":")).encode()


def exists(log_dir: str, files: Files = LOCAL) -> bool:
    """Say whether the broker that last used the log directory stopped in good order."""
    return files.exists(os.path.join(log_dir, CLEAN_SHUTDOWN))


def read(log_dir: str, files: Files = LOCAL) -> int | None:
    """Give the broker epoch of the marker, if there is a marker and it holds one."""
    try:
        return decode(files.read_bytes(os.path.join(log_dir, CLEAN_SHUTDOWN)))
    except FileNotFoundError:
        return None


def write(log_dir: str, broker_epoch: int | None = None, files: Files = LOCAL) -> None:
    """Leave the marker in a log directory."""
    files.replace_file(os.path.join(log_dir, CLEAN_SHUTDOWN), encode(broker_epoch))
