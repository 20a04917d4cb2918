"""Moves a log from one log directory of a broker to another, on any disk.

1. Every file is copied to a directory in the target that is named like one that a broker is about
   to delete; files and names are synced. A starting broker deletes what a kill leaves of it.
2. The target's checkpoints get the entries of the log, but for the cleaner's. A target that no
   broker has used yet gets the source's mark of a clean shutdown, which holds for all it has then.
3. The copy gets its name. From now on both are whole, and a broker does not start with both: it
   says that the partition is in two directories. The target notes what commands of ours wrote.
4. The target's cleaner checkpoint loses an entry that it had of an earlier log of the same name,
   which may be above the end of this one. The log in the source gets a name like that in step 1,
   and its files are removed.
5. The source's checkpoints lose their entries; then the target's cleaner checkpoint gets its own.
   Two of these at once would end a broker's cleaner, none lets it begin at the log's start.

The same move, requested again, removes what is left of step 1, or goes on after step 3 or 4, once
both copies have proved to have the same bytes. Source: Kafka,
LogManager.replaceCurrentWithFutureLog; spec L-28.8, L-24.5.
"""

import hashlib
import os
from collections.abc import Callable
from typing import NamedTuple

from compactor.errors import RefusedError, UsageError
from compactor.offline_log.log_location import LogLocation, require_not_missing
from compactor.reason_codes import ReasonCode
from compactor.settings import own_writes
from storage.file_names import DELETE_DIR, MAX_DIR_NAME
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.log_dir import list_log_dir

MOVE_ID = b"compactor's move".hex()  # as long as the ids that a broker gives
_CHUNK_BYTES = 4 * 1024 * 1024
_WITH_THE_LOG = (checkpoint.RECOVERY_POINT, checkpoint.LOG_START, checkpoint.REPLICATION)

# a broker that finds one of these torn does not start, or loses the log directory, even if it is to
# delete what is beside it; so they never stand there in part
_READ_AT_EVERY_START = (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)

GiveAttributes = Callable[[str, str], None]


class LogMove(NamedTuple):
    """A move of a log, and how much of it was done before."""

    source: LogLocation
    target: LogLocation
    is_copied: bool  # the log is whole in the target
    is_removed: bool  # it is no longer in the source
    size_bytes: int

    @property
    def staged(self) -> str:
        return _aside(self.target)

    @property
    def leaving(self) -> str:
        return _aside(self.source)


def _aside(at: LogLocation) -> str:
    """Return the path of a directory that a broker deletes, the same for each move of the log."""
    end = f"-{at.partition}.{MOVE_ID}{DELETE_DIR}"
    if len(at.topic) + len(end) > MAX_DIR_NAME:  # cut, as Kafka does; another topic is cut the same
        own_id = hashlib.sha256(at.name.encode("utf-8", "surrogateescape")).hexdigest()
        end = f"-{at.partition}.{own_id[: len(MOVE_ID)]}{DELETE_DIR}"
    return os.path.join(at.log_dir, at.topic[: MAX_DIR_NAME - len(end)] + end)


def plan_move(source: LogLocation, target_dir: str, files: Files = LOCAL) -> LogMove:
    """Plan a move, or the rest of one.

    Raise UsageError, or RefusedError where the target has another log of that name.
    """
    target = LogLocation(target_dir, source.topic, source.partition)
    is_copied = files.look_up(target.path) is not None
    is_removed = files.look_up(source.path) is None
    if is_removed:
        is_left = any(source.entry(name, files) is not None for name in checkpoint.ALL)
        if not (is_copied and (is_left or files.exists(_aside(source)))):
            if not is_copied:
                require_not_missing(source, files)
            where = f"; it is in {target_dir}" if is_copied else ""
            raise UsageError(f"there is no {source.path}{where}", "topic_partition", source.name)
    elif is_copied and not _are_equal(source.path, target.path, files):
        raise RefusedError(
            f"{target.path}: there is a log of that name with other files than {source.path}. "
            "A broker does not start with both; find out which one is wanted. Nothing was changed",
            ReasonCode.IN_TWO_LOG_DIRS,
        )
    here = target.path if is_removed else source.path
    size = sum(entry.size_bytes for entry in files.list_directory(here))
    return LogMove(source, target, is_copied, is_removed, size)


def move_log(move: LogMove, files: Files = LOCAL, give: GiveAttributes | None = None) -> None:
    """Move a log, or finish its move. The caller holds the locks of both log directories.

    give: makes a copy like its original: owner, mode, extended attributes.
    """
    if not move.is_copied:
        _remove_directory(move.staged, files)
        try:
            _copy(move, files, _alike if give is None else give)
        except OSError:
            _remove_directory(move.staged, files)
            raise
        _copy_entries(move, files)
        _mark_clean(move, files)
        files.rename(move.staged, move.target.path)
        files.sync_directory(move.target.log_dir)
    if not move.is_removed:
        own = own_writes.read(move.source.log_dir, files).get(move.source.key)
        if own is not None:
            own_writes.note(move.target.log_dir, move.target.key, own, files)
        move.target.set_entry(checkpoint.CLEANER_OFFSET, None, files)
        files.rename(move.source.path, move.leaving)
        files.sync_directory(move.source.log_dir)
    _remove_directory(move.leaving, files)
    _move_entries(move, files)


def _mark_clean(move: LogMove, files: Files) -> None:
    source, target = move.source.log_dir, move.target.log_dir
    if clean_shutdown.exists(target, files) or list_log_dir(target, files).partitions:
        return
    if clean_shutdown.exists(source, files):
        clean_shutdown.write(target, clean_shutdown.read(source, files), files)


def _copy(move: LogMove, files: Files, give: GiveAttributes) -> None:
    files.make_directory(move.staged)
    for entry in sorted(files.list_directory(move.source.path)):
        source = os.path.join(move.source.path, entry.name)
        target = os.path.join(move.staged, entry.name)
        is_whole = entry.name in _READ_AT_EVERY_START
        if is_whole:
            files.replace_file(target, files.read_bytes(source))
        copy = files.open_to_change(target, create=True)
        try:
            with files.open(source) as original:
                for position in range(0, 0 if is_whole else entry.size_bytes, _CHUNK_BYTES):
                    copy.write(position, original.read(position, _CHUNK_BYTES))
            give(source, target)
            files.set_modified(target, entry.mtime_ns // 1_000_000)
            copy.sync()
        finally:
            copy.close()
    give(move.source.path, move.staged)
    files.sync_directory(move.staged)


def _alike(original: str, copy: str) -> None:
    descriptor = LOCAL.open_descriptor(copy, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        LOCAL.give_attributes(descriptor, LOCAL.attributes_of(original))
    finally:
        os.close(descriptor)


def _remove_directory(path: str, files: Files) -> None:
    """Remove a directory of files, if it exists."""
    if not files.exists(path):
        return
    for entry in files.list_directory(path):
        files.remove(os.path.join(path, entry.name))
    files.remove_directory(path)
    files.sync_directory(os.path.dirname(path))


def _are_equal(one: str, other: str, files: Files) -> bool:
    sizes = [{e.name: e.size_bytes for e in files.list_directory(path)} for path in (one, other)]
    if sizes[0] != sizes[1]:
        return False
    for name, size in sizes[0].items():
        pair = os.path.join(one, name), os.path.join(other, name)
        with files.open(pair[0]) as first, files.open(pair[1]) as second:
            for position in range(0, size, _CHUNK_BYTES):
                if first.read(position, _CHUNK_BYTES) != second.read(position, _CHUNK_BYTES):
                    return False
    return True


# ---- checkpoints -----------------------------------------------------------------------------


def _copy_entries(move: LogMove, files: Files) -> None:
    for name in _WITH_THE_LOG:
        if name != checkpoint.REPLICATION or _may_begin(move, files):
            move.target.set_entry(name, move.source.entry(name, files), files)


def _may_begin(move: LogMove, files: Files) -> bool:
    """Return whether a checkpoint of high watermarks is there, or may be begun.

    Of each log without an entry, it says that nothing is replicated.
    """
    directories, _ = files.list_names(move.target.log_dir)
    others = [name for name in directories if name != os.path.basename(move.staged)]
    return files.exists(move.target.checkpoint(checkpoint.REPLICATION)) or not others


def _move_entries(move: LogMove, files: Files) -> None:
    name = checkpoint.CLEANER_OFFSET
    cleaned = move.source.entry(name, files)
    for each in (*_WITH_THE_LOG, name):
        move.source.set_entry(each, None, files)
    if cleaned is not None and move.target.entry(name, files) is None:
        move.target.set_entry(name, cleaned, files)
