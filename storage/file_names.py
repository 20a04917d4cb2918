"""Files of a log: the names of directories and files, and the sizes of a segment's files.

A segment file is its base offset in twenty digits and a suffix; what is half-done has a second
suffix. A partition directory is `<topic>-<partition>`, split at the last `-`. Source: Kafka,
LogFileUtils, LocalLog.parseTopicPartitionName; spec F-1.2 to F-2.5.
"""

import re
import uuid
from typing import NamedTuple

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

CLEANED = ".cleaned"  # being written by the cleaner
SWAP = ".swap"  # complete, about to take its place
DELETED = ".deleted"  # to be unlinked later

INDEX_SUFFIXES = (INDEX, TIME_INDEX, TXN_INDEX)
SEGMENT_SUFFIXES = (LOG, *INDEX_SUFFIXES)  # in Kafka's order of renames
UNFINISHED_SUFFIXES = (CLEANED, SWAP, DELETED)
OFFSET_DIGITS = 20

_MAX_LONG = 2**63 - 1
_MAX_INT = 2**31 - 1
_LAST_DIGITS = f"{_MAX_LONG:0{OFFSET_DIGITS}d}"
_PARTITION = re.compile(r"0|[1-9][0-9]*", re.ASCII)  # "t-07" would be partition 7 a second time
DELETE_DIR = "-delete"  # of the directory of a partition: to be removed
FUTURE_DIR = "-future"  # being moved here from another log directory
STRAY_DIR = "-stray"  # that the cluster does not know
MAX_DIR_NAME = 255
_SPECIAL_DIR = re.compile(r"\S+-\S+\.\S+-(?:delete|future|stray)", re.ASCII)


def file_name(base_offset: int, suffix: str) -> str:
    """Give the name of the file of a segment, or of the snapshot at an offset."""
    assert 0 <= base_offset <= _MAX_LONG, base_offset
    return f"{base_offset:0{OFFSET_DIGITS}d}{suffix}"


def is_offset(digits: str) -> bool:
    """Say whether these are the twenty digits of an offset."""
    return (
        len(digits) == OFFSET_DIGITS
        and digits.isascii()
        and digits.isdigit()
        and digits <= _LAST_DIGITS
    )


def offset_of(name: str) -> int | None:
    """Give the offset before the first dot (F-2.3); None where Kafka would fail to find one."""
    digits, dot, _ = name.partition(".")
    if not dot or not (digits.isascii() and digits.isdigit()):
        return None
    offset = int(digits)
    return offset if offset <= _MAX_LONG else None


def parse_partition_dir(name: str) -> tuple[str, int] | None:
    """Give topic and partition; None for a special directory (F-1.3) and for an invalid name."""
    if is_special_dir(name):
        return None
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not _PARTITION.fullmatch(digits) or int(digits) > _MAX_INT:
        return None
    return topic, int(digits)


def parse_future_dir(name: str) -> tuple[str, int] | None:
    """Give topic and partition of the log that is being moved here (F-1.3); None for any other."""
    if not (name.endswith(FUTURE_DIR) and is_special_dir(name)):
        return None
    return parse_partition_dir(name.rpartition(".")[0])


def special_dir(topic: str, partition: int, kind: str) -> str:
    """Give a new name for the directory of a partition in a special state (F-1.3).

    kind: one of DELETE_DIR, FUTURE_DIR and STRAY_DIR. The topic is cut where the name would be too
    long, but for a directory that gets its own name later.
    """
    behind = f"-{partition}.{uuid.uuid4().hex}{kind}"
    if kind != FUTURE_DIR:
        topic = topic[: MAX_DIR_NAME - len(behind)]
    return topic + behind


def is_special_dir(name: str) -> bool:
    """Say whether the directory is queued for deletion, a replica being moved, or kept aside."""
    return _SPECIAL_DIR.fullmatch(name) is not None


MAX_LOG_BYTES = 2**31 - 1  # Kafka addresses a segment with 32 bits (F-2.6)
MAX_RELATIVE_OFFSET = 2**31 - 1  # of a record in a segment to its base offset


class Segment(NamedTuple):
    """One `.log` file and the index files beside it, as a listing shows them."""

    base_offset: int
    log_bytes: int
    index_bytes: int | None  # None: there is no such file
    time_index_bytes: int | None
    txn_index_bytes: int | None
    log_mtime_ns: int
    log_inode: int
    log_ctime_ns: int = 0
    log_device: int = 0
