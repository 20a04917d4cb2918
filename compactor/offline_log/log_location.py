"""The location of a log, and what the small files of its log directory say of it."""

import os
from typing import NamedTuple

from compactor.errors import RefusedError, UsageError
from compactor.host.suggestions import near_path
from compactor.log_dirs.missing_directories import entries_in, gone_from
from compactor.log_dirs.missing_logs import recorded_ends
from compactor.reason_codes import ReasonCode
from storage.errors import CorruptFileError
from storage.file_names import parse_future_dir
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.log.log_dir import (
    PartitionListing,
    list_partition,
    log_end_offset,
    partition_of,
    why_unloadable,
)


class LogLocation(NamedTuple):
    """A partition's directory in a log directory."""

    log_dir: str
    topic: str
    partition: int

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def path(self) -> str:
        return os.path.join(self.log_dir, self.name)

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    def checkpoint(self, name: str) -> str:
        """Return the path of a checkpoint file of the log directory."""
        return os.path.join(self.log_dir, name)

    def entry(self, name: str, files: Files) -> int | None:
        """Return what a checkpoint says of the log; None: nothing."""
        return checkpoint.read(self.checkpoint(name), files).get(self.key)

    def set_entry(self, name: str, offset: int | None, files: Files) -> None:
        """Write an entry, or take it out; a file that says the same already is left."""
        before = checkpoint.read(self.checkpoint(name), files)
        entries = {key: value for key, value in before.items() if key != self.key}
        if offset is not None:
            entries[self.key] = offset
        if entries != before:
            checkpoint.write(self.checkpoint(name), entries, files)


class KnownOffsets(NamedTuple):
    """What checkpoints and marker say of a log, as a starting broker takes it."""

    log_start: int
    recovery_point: int
    high_watermark: int | None  # None: nothing says what it is, so it is the log end
    cleaner: int | None  # None: the cleaner has not been there
    is_clean: bool  # the broker stopped in good order


def find_log(log_dir: str, topic_partition: str, files: Files = LOCAL) -> LogLocation:
    """Return the location of a log. Raise UsageError if no log has that name."""
    at = named_log(log_dir, topic_partition)
    found = files.look_up(at.path)
    if found is None:
        require_not_missing(at, files)
        raise UsageError(
            f"there is no {at.path}{near_path(at.path)}", "topic_partition", topic_partition
        )
    if not found.is_dir:
        raise CorruptFileError(at.path, 0, f"is {found.special or 'a file'}, not a directory")
    return at


def require_not_missing(at: LogLocation, files: Files) -> None:
    """Raise RefusedError where a log should exist, and does not."""
    for log in gone_from(entries_in(at.log_dir, files), (), files).logs:
        if (log.topic, log.partition) == at.key:
            text = f"{log.problem}. Bring it back from a backup first. Nothing was changed"
            raise RefusedError(f"{at.path}: {text}", ReasonCode.LOG_MISSING)


def named_log(log_dir: str, topic_partition: str) -> LogLocation:
    """Return the location of a log that may not exist. Raise UsageError for an impossible name."""
    key = partition_of(topic_partition)
    if key is None or os.path.basename(topic_partition) != topic_partition:
        raise UsageError(
            "is no log that these commands work on; expected the name of a partition, like "
            "orders-0",
            "topic_partition",
            topic_partition,
        )
    return LogLocation(log_dir, *key)


def known_offsets(at: LogLocation, files: Files = LOCAL) -> KnownOffsets:
    """Read the offsets of a log that its log directory keeps.

    Raise CorruptFileError where a checkpoint cannot be read, RefusedError where the log's records
    are gone: opening it would begin it again as an empty log.
    """
    _require_records(at, files)
    high_watermark = at.entry(checkpoint.REPLICATION, files) or 0
    is_replication_known = files.exists(at.checkpoint(checkpoint.REPLICATION))
    return KnownOffsets(
        log_start=at.entry(checkpoint.LOG_START, files) or 0,
        recovery_point=at.entry(checkpoint.RECOVERY_POINT, files) or 0,
        high_watermark=high_watermark if is_replication_known else None,
        cleaner=at.entry(checkpoint.CLEANER_OFFSET, files),
        is_clean=clean_shutdown.exists(at.log_dir, files),
    )


def _require_records(at: LogLocation, files: Files) -> None:
    names = files.list_names(at.path)[1]
    missing = recorded_ends(at.log_dir, files).why_missing_by_names(at.key, names)
    if missing is not None:
        text = f"{missing.text}. Bring them back from a backup first. Nothing was changed"
        raise RefusedError(f"{at.path}: {text}", missing.code)


def require_changeable(
    at: LogLocation, known: KnownOffsets, files: Files = LOCAL
) -> PartitionListing:
    """Raise where a change of the log is not safe; nothing is changed.

    RefusedError: it is being moved, or files are in the way. CorruptFileError: it does not end with
    a whole batch; what is appended would be lost with the rest.
    """
    others, _ = files.list_names(at.log_dir)
    moving = next((name for name in others if parse_future_dir(name) == at.key), None)
    if moving is not None:
        raise RefusedError(
            f"{at.path}: a broker was moving this log: {moving} is its copy so far. Let a broker "
            "finish the move first. Nothing was changed",
            ReasonCode.MOVING,
        )
    listing = list_partition(at.path, at.topic, at.partition, files)
    if listing.special:
        raise RefusedError(
            f"{at.path}: {listing.special[0]}; links are not followed. Nothing was changed",
            ReasonCode.FOREIGN_FILE,
        )
    if listing.stray:
        problem = f"{listing.stray[0]}: {why_unloadable(listing.stray[0])}. Nothing was changed"
        raise RefusedError(f"{at.path}: {problem}", ReasonCode.FOREIGN_FILE)
    end = log_end_offset(listing)
    if listing.segments and end < known.log_start:
        raise RefusedError(
            f"{at.path}: the log ends at offset {end}, below its log start offset "
            f"{known.log_start} in {checkpoint.LOG_START}: whoever opens it deletes every segment. "
            "Nothing was changed",
            ReasonCode.DAMAGED,
        )
    return listing
