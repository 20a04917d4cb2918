"""Opens an offline log with the storage engine: as a view that changes no file, or to change it.

A change takes these steps. A kill on the way leaves the log as a killed broker does: a broker that
starts recovers it, and so does the same command with --recover-first.

1. `.kafka_cleanshutdown` is removed, as a starting broker does first.
2. The log is opened, changed, flushed and closed, with a snapshot of its producers.
3. The checkpoints of the log directory are written: recovery point, log start, high watermark.
   Records that were appended are noted, so that they do not count as a broker's.
4. `.kafka_cleanshutdown` is written again with its contents, if it existed.

Source: Kafka, LogManager.loadLogs, shutdown; spec L-26.3, L-26.9, L-27.4 to L-27.7.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from compactor.command_context import current_context
from compactor.offline_log.log_location import KnownOffsets, LogLocation
from compactor.settings import own_writes
from compactor.settings.config import Config
from compactor.settings.own_writes import LastWrite, OwnWrite, last_write, others_ms
from storage.errors import CorruptFileError, UnsupportedFormatError
from storage.file_names import LOG
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.files.overlay import OverlayFiles
from storage.formats import checkpoint, clean_shutdown
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.loading import LoadingState, opened_parts, options_at
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.log_dir import list_partition
from storage.log.producer_state_manager import ProducerStateManagerConfig

Result = TypeVar("Result")


class LogSettings(NamedTuple):
    """The settings to open a log with."""

    config: LogConfig
    now_ms: int
    producer_expiration_ms: int
    kafka: KafkaVersion = NEWEST


def log_settings(topic: str, config: Config, now_ms: int) -> LogSettings:
    """Return the settings of a topic for the storage engine."""
    current_context().topics.add(topic)
    found = LogConfig().with_values(config.values(topic))
    return LogSettings(found, now_ms, config.producer_id_expiration_ms, config.kafka.version)


@dataclass(frozen=True, slots=True)
class ViewedLog:
    """A log as a starting broker would find it."""

    log: Log
    known: KnownOffsets
    hidden: tuple[str, ...]  # paths of .log files of which a starting broker would cut off a part


@dataclass(frozen=True, slots=True)
class OpenLog:
    """An open log that is changed, and the checkpoints beside it."""

    at: LogLocation
    log: Log
    known: KnownOffsets
    now_ms: int
    files: Files

    def write_log_start(self) -> None:
        """Write where the log begins, if that is not where its first segment does."""
        start = self.log.log_start_offset
        is_told = start > self.log.segments[0].base_offset
        self.at.set_entry(checkpoint.LOG_START, start if is_told else None, self.files)

    def write_checkpoints(self) -> None:
        """Write the checkpoints that a stopping broker writes.

        A file of high watermarks is not begun: every other log would have none.
        """
        self.at.set_entry(checkpoint.RECOVERY_POINT, self.log.recovery_point, self.files)
        self.write_log_start()
        if self.known.high_watermark is not None:
            self.at.set_entry(checkpoint.REPLICATION, self.log.high_watermark, self.files)

    def lower_cleaner_checkpoint(self, offset: int) -> None:
        """Let the cleaner begin no later than at an offset (C-17.5)."""
        if self.known.cleaner is not None and self.known.cleaner > offset:
            self.at.set_entry(checkpoint.CLEANER_OFFSET, offset, self.files)


@contextmanager
def view_log(
    at: LogLocation, known: KnownOffsets, settings: LogSettings, files: Files = LOCAL
) -> Iterator[ViewedLog]:
    """Open a log without changing a file, also beside a broker."""
    with closing(OverlayFiles(files)) as overlay:
        log = _open(at, known, settings, overlay)
        try:
            hidden = tuple(path for path in overlay.cut_below() if path.endswith(LOG))
            yield ViewedLog(log, known, hidden)
        finally:
            log.close_handlers()


def change_log(
    at: LogLocation,
    known: KnownOffsets,
    settings: LogSettings,
    change: Callable[[OpenLog], Result],
    files: Files = LOCAL,
) -> Result:
    """Open a log, change it, and leave it as a broker that stops does. The caller holds the lock.

    files: on an overlay everything is done, and nothing changed.
    """
    epoch = clean_shutdown.read(at.log_dir, files)
    if known.is_clean:
        files.remove(os.path.join(at.log_dir, CLEAN_SHUTDOWN))
        files.sync_directory(at.log_dir)
    others = _others_ms(at, files)
    with _open(at, known, settings, files) as log:
        end = log.log_end_offset
        work = OpenLog(at, log, known, settings.now_ms, files)
        if (known.cleaner or 0) > log.log_end_offset:  # as Kafka's cleaner, but before any append
            work.lower_cleaner_checkpoint(log.log_start_offset)
            work = replace(work, known=known._replace(cleaner=log.log_start_offset))
        result = change(work)
    files.sync_directory(at.path)
    work.write_checkpoints()
    if others is not None and work.log.log_end_offset > end:
        written = _last_write(at, files)
        assert written is not None
        own_writes.note(at.log_dir, at.key, OwnWrite(written.log_ms, others), files)
    if known.is_clean:
        clean_shutdown.write(at.log_dir, epoch, files)
    return result


def _others_ms(at: LogLocation, files: Files) -> int | None:
    """Return the time of the last records that no command of ours wrote; None: unknown."""
    try:
        return others_ms(_last_write(at, files), own_writes.read(at.log_dir, files).get(at.key))
    except (CorruptFileError, UnsupportedFormatError, OSError):
        return None  # then the log counts as a broker's, and is set aside rather than cleaned


def _last_write(at: LogLocation, files: Files) -> LastWrite | None:
    return last_write(list_partition(at.path, at.topic, at.partition, files))


def _open(at: LogLocation, known: KnownOffsets, settings: LogSettings, files: Files) -> Log:
    options = options_at(
        settings.now_ms,
        config=replace(settings.config, file_delete_delay_ms=0),  # nobody would come later
        files=files,
        state=LoadingState(
            is_clean=known.is_clean,
            recovery_point=known.recovery_point,
            log_start=known.log_start,
        ),
        producer_settings=ProducerStateManagerConfig(settings.producer_expiration_ms),
        kafka=settings.kafka,
    )
    log = Log(opened_parts(at.path, options))  # who changes a log has asked for marks of copies
    if known.high_watermark is None:
        log.follow_end()
    else:
        log.update_high_watermark(known.high_watermark)
    return log
