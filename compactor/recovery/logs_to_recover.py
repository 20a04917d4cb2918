"""Recover the logs of a directory, each by what its checkpoints and settings say of it.

The recovery points, below which everything is on disk, and the log starts are those of the
directory's checkpoints; one that is missing or empty says nothing of any log (F-13.4). A killed
broker leaves empty ones in its first minute.

`load_as_kafka` (`recover --as-kafka`) loads a log and closes it again, as a broker that starts and
stops. It does whatever a broker does, also where that loses what is sound: the storage engine works
on the files themselves, in its own order, which a crash may cut short anywhere.

Source: Kafka, LogManager.loadLog, LogLoader, UnifiedLog.close; spec L-24, L-25.
"""

import os
import threading
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

from compactor.recovery.log_recovery import (
    OPEN_FILES,
    PutInPlace,
    RecoveredLog,
    RecoveryFacts,
    put_in_place,
    rehearse_recovery,
)
from compactor.recovery.settling import left_after_loading
from compactor.settings.config import Config
from storage.errors import CorruptFileError
from storage.file_names import CLEANED, LOG, SWAP
from storage.files.files import Files, size_of
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.loading import LogOptions, opened_parts
from storage.log.log import Log
from storage.log.log_dir import list_partition
from storage.log.producer_state import ExpiryClock


class LoadedAsKafka(NamedTuple):
    """What has become of the files of a log, by their names."""

    finished: tuple[str, ...]  # of a swap, put in place
    undone: tuple[str, ...]  # of a cleaning or a swap that was not complete
    removed: tuple[str, ...]
    rebuilt: tuple[str, ...]
    truncated: str | None
    log_start_offset: int
    end_offset: int


class CleanedTo:
    """The cleaner's checkpoint of a log directory. Safe for threads.

    One that cannot be read stays as it is, and so does the end of each log: what the file says
    once somebody has mended it may lie above a new one.
    """

    def __init__(self, log_dir: str, files: Files) -> None:
        self._path, self._files = os.path.join(log_dir, checkpoint.CLEANER_OFFSET), files
        self._lock = threading.Lock()
        self._entries: dict[TopicPartition, int] = {}
        self._unread: CorruptFileError | None = None
        try:
            self._entries = checkpoint.read(self._path, files)
        except CorruptFileError as error:
            self._unread = error

    def require_known(self) -> None:
        """Raise CorruptFileError where the file cannot be read."""
        if self._unread is not None:
            problem = (
                f"{self._unread.problem}; how far the log was cleaned is not known, so nothing is "
                "cut off. Bring this file back, or empty it: then every log counts as dirty as a "
                "whole"
            )
            raise CorruptFileError(self._unread.path, self._unread.position, problem)

    def lower(self, log: TopicPartition, log_start: int, log_end: int) -> bool:
        """Let a log that ends below its entry count as dirty as a whole; whether it did not.

        So does a broker's cleaner (C-4.1), but at its next look: by then records may lie below the
        entry that it has never seen, and a value that one of them deletes would come back.
        """
        with self._lock:
            if self._entries.get(log, 0) <= log_end:
                return False
            self._entries[log] = log_start
            checkpoint.write(self._path, self._entries, self._files)
            return True


class LogsToRecover:
    """Recovers logs of one directory.

    CorruptFileError if a checkpoint is damaged, ConfigError if the settings of a topic clash.
    """

    def __init__(
        self, log_dir: str, config: Config, now_ms: int, topics: Collection[str], files: Files
    ) -> None:
        self._log_dir, self._files = log_dir, files
        self._recovery_points = _entries(files, log_dir, checkpoint.RECOVERY_POINT)
        self._log_starts = _entries(files, log_dir, checkpoint.LOG_START)
        self._cleaned_to = CleanedTo(log_dir, files)
        self._topics = {topic: config.topic(topic) for topic in topics}
        self._clock = ExpiryClock(now_ms, config.producer_id_expiration_ms)
        self._kafka = config.kafka.version

    def recovered(self, topic: str, partition: int, files: Files) -> RecoveredLog | None:
        """Give what one log that is settled is to be; None: a broker begins it. Nothing is changed.

        CorruptFileError where something sound would be lost, LogChangedError where another writer
        was at work meanwhile.
        """
        log = list_partition(self._path(topic, partition), topic, partition, files)
        return rehearse_recovery(log, self._facts(topic, partition)) if log.segments else None

    def put_in_place(self, recovered: RecoveredLog, seen: Files | None = None) -> PutInPlace:
        """Let a log be so. LogChangedError where another writer was at work meanwhile.

        seen: the files that show it; None: those of the directory. Then the cleaner's checkpoint
        is lowered before the log is cut off: no crash leaves it above the log's end. Where it
        cannot be read, CorruptFileError.
        """
        log = recovered.log
        index_bytes = self._topics[log.topic].segment_index_bytes
        if recovered.is_cut:
            self._cleaned_to.require_known()
        if seen is not None:
            return put_in_place(replace(recovered, log=log._replace(access=seen)), index_bytes)
        start, end = recovered.log_start_offset, recovered.end_offset
        is_lowered = self._lower(log.topic, log.partition, start, end)
        done = put_in_place(recovered, index_bytes)
        return done._replace(rebuilt=(*done.rebuilt, *is_lowered))

    def load_as_kafka(self, topic: str, partition: int, is_clean: bool) -> LoadedAsKafka:
        """Do with a log whatever a broker does that starts and stops. LogError, OSError."""
        self._cleaned_to.require_known()
        options = self._facts(topic, partition).options(self._files, is_clean)
        few_open = replace(options, max_open_files=OPEN_FILES)
        done = load_as_kafka(self._path(topic, partition), few_open)
        is_lowered = self._lower(topic, partition, done.log_start_offset, done.end_offset)
        return done._replace(rebuilt=(*done.rebuilt, *is_lowered))

    def _lower(self, topic: str, partition: int, start: int, end: int) -> tuple[str, ...]:
        """The name of the cleaner's checkpoint, if it was changed."""
        is_lowered = self._cleaned_to.lower((topic, partition), start, end)
        return (checkpoint.CLEANER_OFFSET,) if is_lowered else ()

    def _path(self, topic: str, partition: int) -> str:
        return os.path.join(self._log_dir, f"{topic}-{partition}")

    def _facts(self, topic: str, partition: int) -> RecoveryFacts:
        config = self._topics[topic]
        return RecoveryFacts(
            log_start_offset=self._log_starts.get((topic, partition), 0),
            recovery_point=self._recovery_points.get((topic, partition), 0),
            index_interval_bytes=config.index_interval_bytes,
            segment_index_bytes=config.segment_index_bytes,
            clock=self._clock,
            kafka=self._kafka,
        )


def load_as_kafka(path: str, options: LogOptions) -> LoadedAsKafka:
    """Load a log and close it, then remove what dead runs have left beside it.

    Raise a LogError where no log comes of it, and OSError; what was done by then stays done, as in
    Kafka.
    """
    files = options.files
    before = _contents(files, path)
    log = Log(opened_parts(path, options))  # who recovers has the lock, and has asked for marks
    try:
        log.prepare_for_close()
        log.flush(force=True)
        log.close()
    except BaseException:
        log.close_handlers()
        raise
    files.sync_directory(path)
    for name in left_after_loading(files.list_names(path)[1]):
        files.remove(os.path.join(path, name))
    return _compared(before, _contents(files, path), log)


class _Content(NamedTuple):
    size_bytes: int
    checksum: int  # 0 of a `.log`


def _contents(files: Files, path: str) -> dict[str, _Content]:
    return {name: _content(files, os.path.join(path, name)) for name in files.list_names(path)[1]}


def _content(files: Files, path: str) -> _Content:
    if LOG in os.path.basename(path):  # with its suffix, if it has one
        return _Content(size_of(files, path), 0)
    data = files.read_bytes(path)
    return _Content(len(data), crc32(data))


def _compared(before: dict[str, _Content], after: dict[str, _Content], log: Log) -> LoadedAsKafka:
    gone = before.keys() - after.keys()
    swapped = {name.removesuffix(SWAP) for name in gone if name.endswith(SWAP)}
    finished = {name for name in swapped if after.get(name, 0) != before.get(name, 0)}
    undone = {n for n in gone if n.endswith(CLEANED) or n.removesuffix(SWAP) in swapped - finished}
    changed = {name for name in after if after[name] != before.get(name)} - finished
    cut = {name for name in changed if name.endswith(LOG) and name in before}
    told = [
        f"{name} from {before[name].size_bytes:,} to {after[name].size_bytes:,} bytes"
        for name in sorted(cut)
    ]
    return LoadedAsKafka(
        finished=tuple(sorted(finished)),
        undone=tuple(sorted(undone)),
        removed=tuple(sorted(gone - undone - {name + SWAP for name in finished})),
        rebuilt=tuple(sorted(changed - cut)),
        truncated="; ".join(told) or None,
        log_start_offset=log.log_start_offset,
        end_offset=log.log_end_offset,
    )


def _entries(files: Files, log_dir: str, name: str) -> dict[TopicPartition, int]:
    return checkpoint.read(os.path.join(log_dir, name), files)
