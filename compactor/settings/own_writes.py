"""Note, in a file of the log directory, to which logs a command of ours wrote without a broker.

    {"version": 1, "logs": [{"topic", "partition", "log_ms", "others_ms"}]}

These commands write after the broker of the logs has stopped. A log with records from long after
the end of the metadata log shows that the metadata log is an old copy (spec S-2.10, S-3.6). A
record of `log append` or `log abort` shows no such thing. So these commands note when the records
that they met were written, and how they left the log. The note counts for as long as nobody else
writes to the log. A broker does not look at a file in a log directory that it does not know.
"""

import json
import os
from typing import Any, NamedTuple

from compactor.json_types import is_of_type
from storage.files.files import Files
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import PartitionListing, last_batch_time_ms

OWN_WRITES = "compactor-writes.json"
VERSION = 1
MAX_BYTES = 64 << 20  # a hundred thousand logs; what is longer was not written here


class LastWrite(NamedTuple):
    """When the last records of a log were written."""

    batch_ms: int  # largest timestamp of its last batches
    log_ms: int  # time of modification of their file


class OwnWrite(NamedTuple):
    """How a command left a log that it wrote to."""

    log_ms: int  # time of modification of the last file with records
    others_ms: int  # time of the last records that somebody else wrote; -1: there were none


def last_write(partition: PartitionListing, after_ms: int = -1) -> LastWrite | None:
    """Give the last write to a log; None if it has no records, or none in a file that is younger.

    Raise CorruptFileError, UnsupportedFormatError and OSError where it cannot be read.
    """
    for segment in reversed(partition.segments):
        log_ms = segment.log_mtime_ns // 1_000_000
        if log_ms <= after_ms:
            return None
        if segment.log_bytes:
            return LastWrite(last_batch_time_ms(partition, segment), log_ms)
    return None


def others_ms(last: LastWrite | None, own: OwnWrite | None) -> int:
    """Give the time of the last records that somebody else wrote; -1: none.

    Both the file and its records have to say so: a copy may have new files, and a producer may have
    sent any time.
    """
    if last is None:
        return -1
    is_own = own is not None and own.log_ms == last.log_ms
    return own.others_ms if own is not None and is_own else min(last)


def read(log_dir: str, files: Files) -> dict[TopicPartition, OwnWrite]:
    """Read the notes; a file that cannot be read has none, and excuses no log."""
    try:
        document = json.loads(files.read_range(os.path.join(log_dir, OWN_WRITES), 0, MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return {}
    rows = document.get("logs")
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        return {}
    return {
        (row["topic"], row["partition"]): OwnWrite(row["log_ms"], row["others_ms"]) for row in rows
    }


def note(log_dir: str, log: TopicPartition, write: OwnWrite, files: Files) -> None:
    """Note how a log was left, in one step, and forget logs that are gone. Raise OSError."""
    notes = {**read(log_dir, files), log: write}
    rows = [
        {"topic": topic, "partition": partition, **each._asdict()}
        for (topic, partition), each in sorted(notes.items())
        if files.is_directory(os.path.join(log_dir, f"{topic}-{partition}"))
    ]
    text = json.dumps({"version": VERSION, "logs": rows}, indent=1) + "\n"
    files.replace_file(os.path.join(log_dir, OWN_WRITES), text.encode("ascii"))


def _is_row(row: Any) -> bool:
    types = {"topic": str, "partition": int, "log_ms": int, "others_ms": int}
    return (
        isinstance(row, dict)
        and row.keys() == types.keys()
        and all(is_of_type(row[name], type_) for name, type_ in types.items())
    )
