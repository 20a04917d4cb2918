"""The logs of a directory, each recovered by what is known of it.

The recovery points, below which everything is on disk, and the log starts are those of the
directory's checkpoints; one that is missing or empty says nothing of any log (F-13.4). A killed
broker leaves empty ones in its first minute.
"""

import os
import threading
from collections.abc import Collection
from dataclasses import replace

from compactor.recovery.as_kafka import LoadedAsKafka, load_as_kafka
from compactor.recovery.log_recovery import OPEN_FILES, RecoveredLog, RecoveryFacts, recovered_log
from compactor.recovery.recovered_files import PutInPlace, put_in_place
from compactor.settings.config import Config
from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.log.log_dir import list_partition
from storage.log.producer_state import ExpiryClock


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
        return recovered_log(log, self._facts(topic, partition)) if log.segments else None

    def put_in_place(self, found: RecoveredLog, seen: Files | None = None) -> PutInPlace:
        """Let a log be so. LogChangedError where another writer was at work meanwhile.

        seen: the files that show it; None: those of the directory. Then the cleaner's checkpoint
        is lowered before the log is cut off: no crash leaves it above the log's end. Where it
        cannot be read, CorruptFileError.
        """
        log = found.log
        index_bytes = self._topics[log.topic].segment_index_bytes
        if found.is_cut:
            self._cleaned_to.require_known()
        if seen is not None:
            return put_in_place(replace(found, log=log._replace(access=seen)), index_bytes)
        start, end = found.log_start_offset, found.end_offset
        is_lowered = self._lower(log.topic, log.partition, start, end)
        done = put_in_place(found, index_bytes)
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


def _entries(files: Files, log_dir: str, name: str) -> dict[TopicPartition, int]:
    return checkpoint.read(os.path.join(log_dir, name), files)


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
