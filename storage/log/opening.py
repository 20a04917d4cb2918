"""Opening of a log: its options, and its state, loaded from its directory or begun there.

Or what would come of that, with no file changed.

Source: Kafka, UnifiedLog.create; spec L-25.
"""

import os
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from storage.files.file_pool import pooled
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.files.overlay import FileChange, OverlayFiles
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.copy_marks import require_may_change
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.loading import LoadingReport, LoadingState, LoadingWay, LogLoader
from storage.log.local_log import LocalLog, LogDirState, LogSegments
from storage.log.log_config import LogConfig
from storage.log.log_dir_lock import require_nobody
from storage.log.log_state import LogState, Truncating, Watermarks, no_owner
from storage.log.producer_state_manager import ProducerStateManager, ProducerStateManagerConfig
from storage.log.scheduler import Scheduler
from storage.log.segment import Clock, LogPlace
from storage.log.snapshot_files import SnapshotFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """`directory` and `producer_settings` are shared by the logs of one log directory.

    max_open_files: of the log, however many segments it has; None: 500, or half of what the process
    may have open where that is less. files may be a FilePool, which logs that share it share with
    its own number.

    truncating: is entered before a truncation, without the log's lock, with the offset at which the
    log will end, and the base offset of the segment that will be the active one; None where no
    other is cut.
    """

    clock: Clock
    scheduler: Scheduler
    config: LogConfig = field(default_factory=LogConfig)
    files: Files = LOCAL
    max_open_files: int | None = None
    state: LoadingState = field(default_factory=LoadingState)
    producer_settings: ProducerStateManagerConfig = field(
        default_factory=ProducerStateManagerConfig
    )
    directory: LogDirState = field(default_factory=LogDirState)
    way: LoadingWay = field(default_factory=LoadingWay)
    truncating: Truncating = no_owner
    kafka: KafkaVersion = NEWEST  # whose answer is given where the versions differ


class LoadedLog(NamedTuple):
    state: LogState
    report: LoadingReport


class Rehearsal(NamedTuple):
    """What a loading would come to."""

    report: LoadingReport
    log_start_offset: int
    end_offset: int
    bases: tuple[int, ...]  # base offsets of the segments that would be left, rising
    changes: tuple[FileChange, ...]  # of files in the directory of the log, by name


def opened_alone(path: str, options: LogOptions) -> LogState:
    """Open a log that is no copy that nobody is to change, and that nobody else has open.

    Raise CopyMarkedError and LogDirLockedError. A log manager asks once for all its logs.
    """
    log_dir = os.path.dirname(os.path.abspath(path))
    require_may_change(log_dir, options.files)
    if options.files is LOCAL:
        require_nobody(log_dir)
    return opened_parts(path, options)


def opened_parts(path: str, options: LogOptions) -> LogState:
    """Load the log in a directory of a partition, or begin one; its first watermarks are set.

    KafkaStorageError where files fail, and the log directory is offline then.
    """
    local = _local_log(path, options)
    made = options.directory.reported(f"loading {path}", lambda: _loaded(local, options)).state
    made.watermarks.set_log_start(made.watermarks.log_start)
    made.watermarks.update_first_unstable()
    return made


def rehearsed(path: str, options: LogOptions) -> Rehearsal:
    """Load a log, and close it again, on an overlay, while nobody else changes it.

    Raise OSError where files fail, and a LogError where no log would come of it.
    """
    overlay = OverlayFiles(options.files, is_alone=True)
    try:
        above = replace(options, files=overlay)
        state, report = _loaded(_local_log(path, above), above)
        state.local.close()
        local, start = state.local, state.watermarks.log_start
        changes = tuple(overlay.changes(path))
        return Rehearsal(report, start, local.end_offset, tuple(local.segments.bases), changes)
    finally:
        overlay.close()


def _local_log(path: str, options: LogOptions) -> LocalLog:
    """Return a log of which nothing is known yet, in a directory that exists."""
    files = pooled(options.files, options.max_open_files)
    if not files.is_directory(path):
        files.make_directory(path)
    place = LogPlace(files, path, options.clock, options.kafka)
    local = LocalLog(place, LogSegments(), options.scheduler, options.directory)
    local.config = options.config
    return local


def _loaded(local: LocalLog, options: LogOptions) -> LoadedLog:
    with local.files.knowing(local.place.path):
        return _load(local, options)


def _load(local: LocalLog, options: LogOptions) -> LoadedLog:
    files, path = local.files, local.place.path
    epochs = LeaderEpochFileCache(files, path, options.scheduler)
    producers = ProducerStateManager(SnapshotFiles(files, path), options.producer_settings)
    loader = LogLoader(local, options.state, epochs, producers, options.way)
    try:
        offsets = loader.load()
    except BaseException:
        local.segments.close_handles()
        raise
    local.recovery_point = offsets.recovery_point
    local.set_end(offsets.end)
    state = LogState(
        local=local,
        watermarks=Watermarks(local, producers, offsets.log_start),
        producers=producers,
        epochs=epochs,
        scheduler=options.scheduler,
        truncating=options.truncating,
    )
    return LoadedLog(state, loader.report)
