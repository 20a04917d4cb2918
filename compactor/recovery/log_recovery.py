"""Recover logs that no broker left in good order: rehearse and judge, then put files in place.

`LogsToRecover` are those of a directory. Its checkpoints say where each is on disk and where it
begins; one that is missing or empty says nothing of any log (F-13.4). A killed broker leaves empty
ones in its first minute.

`rehearse_recovery` changes nothing. The storage engine loads the log on an overlay, as a broker
that starts does: what that changes is what is to be done. But only what a crash tears is cut off:
where a whole batch with a right checksum follows the damage, or the damage is below the recovery
point, so that it was on disk, the log is left as it is, with the place (docs/differences.md).

`put_in_place` carries it out. The log directory has no marker of a clean shutdown, so that a broker
that starts in between does it all by itself. The steps, and what a crash after each of them
leaves. Recovery decides again from what is left, and with the same end:

1. later segments -> .deleted; sync   the segment before is still damaged: what is left of them goes
2. cut the damaged segment off, and   whole as it is; its indexes may reach too far, and are made
   sync every `.log` that was read    from it again
3. indexes, each replaced in one      what was not replaced is made again; of a segment without
   step, the .index files last; one   an .index all are, wherever the recovery point is
   that is only longer, as that of
   a killed broker, cut
4. snapshots that are new             the state is built from them instead of from older ones
5. leader-epoch-checkpoint            what it has of offsets past the end is dropped again
6. remove snapshots of no use         those that are left are removed
7. remove the .deleted files          they are of no consequence

A file that is right already is not touched. `.kafka_cleanshutdown` is not written: a broker may
look for itself.

`load_as_kafka` (`recover --as-kafka`) loads a log and closes it again, as a broker that starts and
stops. It does whatever a broker does, also where that loses what is sound: the storage engine works
on the files themselves, in its own order, which a crash may cut short anywhere.

Source: Kafka, LogManager.loadLog, LogLoader.load, recoverLog, UnifiedLog.close; spec F-12.5,
F-14.3, F-16.1, C-23, L-24, L-25.
"""

import os
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

from cleaner_jobs.source_identity import LogChangedError
from compactor.finalizer import mark_deleted
from compactor.recovery.leftovers import left_after_loading
from compactor.settings.config import Config
from storage.errors import CorruptFileError
from storage.file_names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    file_name,
    offset_of,
)
from storage.files.files import Entry, Files, size_of
from storage.files.overlay import FileChange
from storage.formats import checkpoint, leader_epoch_checkpoint
from storage.formats.checkpoint import TopicPartition
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.segment_indexes import SegmentIndexes, made_to_fit
from storage.log.errors import LogError
from storage.log.loading import (
    LoadingReport,
    LoadingState,
    LogOptions,
    opened_parts,
    options_at,
    rehearsed,
)
from storage.log.log import Log
from storage.log.log_config import LogConfig
from storage.log.log_dir import PartitionListing, list_partition
from storage.log.producer_state import ExpiryClock
from storage.log.producer_state_manager import ProducerStateManagerConfig
from storage.log.segment_reader import first_sound_batch, read_batches
from storage.log.segment_recovery import RecoveredSegment

_LEAST_BATCH_BYTES = 26  # of a message of format v0, without key and value
_LARGEST_ENTRY_BYTES = 12  # of an index
_IN_USE = "changed since it was read, so nothing was cut off: the log is in use"
OPEN_FILES = 32  # of each log that is loaded, of which several are at once


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """What is to become of the files of a partition directory."""

    log: PartitionListing
    before_read: dict[int, Entry | None]  # of each `.log`, by base offset
    recovered: tuple[int, ...]  # base offsets of those that are left, rising
    deleted: tuple[int, ...]  # base offsets, rising
    changes: tuple[FileChange, ...]  # by name
    log_start_offset: int
    end_offset: int

    @property
    def is_cut(self) -> bool:
        """Whether less of the log is left than it has."""
        return bool(self.deleted) or any(change.name.endswith(LOG) for change in self.changes)


class ChangedFiles(NamedTuple):
    """What has become of the files of a log, by their names."""

    rebuilt: tuple[str, ...]
    removed: tuple[str, ...]
    truncated: str | None  # the `.log` that was cut off, and by how much
    finished: tuple[str, ...] = ()  # of a swap, put in place
    undone: tuple[str, ...] = ()  # of a cleaning or a swap that was not complete


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
        if not log.segments:
            return None
        return rehearse_recovery(log, self._options(topic, partition, files, is_clean=False))

    def put_in_place(self, recovered: RecoveredLog, seen: Files | None = None) -> ChangedFiles:
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

    def load_as_kafka(self, topic: str, partition: int, is_clean: bool) -> ChangedFiles:
        """Do with a log whatever a broker does that starts and stops. LogError, OSError."""
        self._cleaned_to.require_known()
        options = self._options(topic, partition, self._files, is_clean)
        done, log = load_as_kafka(self._path(topic, partition), options)
        is_lowered = self._lower(topic, partition, log.log_start_offset, log.log_end_offset)
        return done._replace(rebuilt=(*done.rebuilt, *is_lowered))

    def _lower(self, topic: str, partition: int, start: int, end: int) -> tuple[str, ...]:
        """The name of the cleaner's checkpoint, if it was changed."""
        is_lowered = self._cleaned_to.lower((topic, partition), start, end)
        return (checkpoint.CLEANER_OFFSET,) if is_lowered else ()

    def _path(self, topic: str, partition: int) -> str:
        return os.path.join(self._log_dir, f"{topic}-{partition}")

    def _options(self, topic: str, partition: int, files: Files, is_clean: bool) -> LogOptions:
        config = self._topics[topic]
        return options_at(
            self._clock.now_ms,
            config=LogConfig(
                index_interval_bytes=config.index_interval_bytes,
                segment_index_bytes=config.segment_index_bytes,
                file_delete_delay_ms=0,
            ),
            files=files,
            max_open_files=OPEN_FILES,
            state=LoadingState(
                is_clean=is_clean,
                recovery_point=self._recovery_points.get((topic, partition), 0),
                log_start=self._log_starts.get((topic, partition), 0),
            ),
            producer_settings=ProducerStateManagerConfig(self._clock.expiration_ms),
            kafka=self._kafka,
        )


def load_as_kafka(path: str, options: LogOptions) -> tuple[ChangedFiles, Log]:
    """Load a log and close it, then remove what dead runs have left beside it.

    Return what has become of its files, and the closed log. Raise a LogError where no log comes of
    it, and OSError; what was done by then stays done, as in Kafka.
    """
    files = options.files
    before = _contents(files, path)
    # who recovers has the lock, and has asked for marks
    with Log(opened_parts(path, options)) as log:
        log.prepare_for_close()
    files.sync_directory(path)
    for name in left_after_loading(files.list_names(path)[1]):
        files.remove(os.path.join(path, name))
    return _compared(before, _contents(files, path)), log


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


def _compared(before: dict[str, _Content], after: dict[str, _Content]) -> ChangedFiles:
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
    return ChangedFiles(
        finished=tuple(sorted(finished)),
        undone=tuple(sorted(undone)),
        removed=tuple(sorted(gone - undone - {name + SWAP for name in finished})),
        rebuilt=tuple(sorted(changed - cut)),
        truncated="; ".join(told) or None,
    )


def _entries(files: Files, log_dir: str, name: str) -> dict[TopicPartition, int]:
    return checkpoint.read(os.path.join(log_dir, name), files)


def rehearse_recovery(log: PartitionListing, options: LogOptions) -> RecoveredLog:
    """Read a log that has segments, and return what a recovery would make of it.

    Raises:
        CorruptFileError: It is not to be recovered by cutting its end off.
        LogChangedError: Another writer was at work meanwhile, so that nothing can be judged.
    """
    path = os.path.join(log.path, LEADER_EPOCH_CHECKPOINT)
    leader_epoch_checkpoint.check(leader_epoch_checkpoint.read(path, log.access), path)
    bases = [segment.base_offset for segment in log.segments]
    before_read = {base: log.access.look_up(_log_path(log, base)) for base in bases}
    try:
        rehearsal = rehearsed(log.path, _for_rehearsal(log, options))
    except LogError as error:
        base_offset, position = error.place or (bases[-1], error.position or 0)
        problem = f"{error.kafka_name}: {error}"
        raise CorruptFileError(_log_path(log, base_offset), position, problem) from error
    _require_same_segments(log)
    require_unchanged(log, before_read)
    _Judge(log, options.state, rehearsal.report).require_torn()
    return RecoveredLog(
        log=log,
        before_read=before_read,
        recovered=tuple(
            sorted({each.base_offset for each in rehearsal.report.recovered} & {*rehearsal.bases})
        ),
        deleted=tuple(base for base in bases if base not in rehearsal.bases),
        changes=rehearsal.changes,
        log_start_offset=rehearsal.log_start_offset,
        end_offset=rehearsal.end_offset,
    )


def put_in_place(recovered: RecoveredLog, segment_index_bytes: int) -> ChangedFiles:
    """Steps 1 to 7. LogChangedError where a `.log` is not what was read."""
    path, files = recovered.log.path, recovered.log.access
    changes = {change.name: change for change in recovered.changes}
    require_unchanged(recovered.log, recovered.before_read)
    deleted = mark_deleted(files, path, recovered.deleted[::-1])
    if deleted:
        files.sync_directory(path)
    truncated = _cut_off(recovered, changes)
    _sync_logs(recovered)
    written = _written(recovered, changes, segment_index_bytes)
    rebuilt = [name for name, data in written if _make(files, os.path.join(path, name), data)]
    gone = {change.name for change in recovered.changes if change.size_bytes is None}
    for name in sorted(gone):
        if files.exists(os.path.join(path, name)):
            files.remove(os.path.join(path, name))
    for deleted_path in deleted:
        files.remove(deleted_path)
    removed = gone | {os.path.basename(p).removesuffix(DELETED) for p in deleted}
    return ChangedFiles(tuple(rebuilt), tuple(sorted(removed)), truncated)


def require_unchanged(log: PartitionListing, before_read: Mapping[int, Entry | None]) -> None:
    """Raise LogChangedError where a `.log` is not as it was before it was read."""
    for base, before in before_read.items():
        path = _log_path(log, base)
        if log.access.look_up(path) != before:
            raise LogChangedError(path, _IN_USE)


def _require_same_segments(log: PartitionListing) -> None:
    """One that was rolled meanwhile is seen in part: what would be done with it is not judged."""
    now = list_partition(log.path, log.topic, log.partition, log.access, with_files=False)
    before, after = ({segment.base_offset for segment in seen.segments} for seen in (log, now))
    for base in sorted(before ^ after):
        raise LogChangedError(_log_path(log, base), _IN_USE)


def _for_rehearsal(log: PartitionListing, options: LogOptions) -> LogOptions:
    """Give room for every entry: an index that outgrows its own is made sparse once it is made."""
    interval_bytes = max(options.config.index_interval_bytes, _LEAST_BATCH_BYTES)
    largest = max(segment.log_bytes for segment in log.segments)
    room = (largest // interval_bytes + 2) * _LARGEST_ENTRY_BYTES
    config = replace(options.config, segment_index_bytes=room)
    return replace(options, config=config, may_split=False)


class _Judge:
    """Whether what a loading would cut off is what a crash tears, and nothing else."""

    def __init__(self, log: PartitionListing, state: LoadingState, report: LoadingReport) -> None:
        self._log, self._state, self._report = log, state, report

    def require_torn(self) -> None:
        """Raise CorruptFileError unless a crash explains the damage and nothing sound follows."""
        for segment in self._report.recovered:
            if segment.out_of_order_at is not None:
                raise self._out_of_order(segment, segment.out_of_order_at)
            if segment.cut_bytes:
                self._require_torn(segment)
        for end_offset in self._report.ends_below_start:
            last = self._report.recovered[-1]
            problem = (
                f"log ends at offset {end_offset}, before its log start offset "
                f"{self._state.log_start}: a broker that starts here deletes every segment"
            )
            raise CorruptFileError(self._path(last), last.log_bytes, problem)

    def _path(self, segment: RecoveredSegment) -> str:
        return _log_path(self._log, segment.base_offset)

    def _out_of_order(self, segment: RecoveredSegment, position: int) -> CorruptFileError:
        end_offset = segment.base_offset
        path = self._path(segment)
        for at, header, _ in read_batches(path, files=self._log.access):
            if at == position:
                problem = f"base offset {header.base_offset}, expected {end_offset} or more"
                return CorruptFileError(path, position, problem)
            end_offset = max(end_offset, header.next_offset)
        return CorruptFileError(path, position, "a batch out of order")

    def _damage(self, segment: RecoveredSegment) -> CorruptFileError:
        """What is wrong after the last sound batch."""
        path, position = self._path(segment), segment.log_bytes
        try:
            # none: somebody has cut the log off meanwhile
            next(read_batches(path, files=self._log.access, start=position), None)
        except CorruptFileError as error:
            return error
        return CorruptFileError(path, position, "a batch that no broker takes")

    def _require_torn(self, segment: RecoveredSegment) -> None:
        damage, end_offset = self._damage(segment), segment.end_offset
        if end_offset < self._state.recovery_point:
            problem = (
                f"{damage.problem}; records from offset {end_offset} up to the recovery "
                f"point {self._state.recovery_point} were on disk: no crash can have torn them"
            )
            raise CorruptFileError(damage.path, damage.position, problem)
        start = segment.log_bytes
        for base_offset in [s.base_offset for s in self._log.segments]:
            if base_offset < segment.base_offset:
                continue
            path = _log_path(self._log, base_offset)
            sound = first_sound_batch(path, start, base_offset, self._log.access)
            if sound == segment.log_bytes and base_offset == segment.base_offset:
                raise damage  # the batch itself is whole, and not what a broker writes
            if sound is not None:
                behind = f"{os.path.basename(path)} has a sound batch at byte {sound}, behind it"
                problem = f"{damage.problem}; {behind}: cutting the log off here would lose that"
                raise CorruptFileError(damage.path, damage.position, problem)
            start = 0


def _cut_off(recovered: RecoveredLog, changes: Mapping[str, FileChange]) -> str | None:
    told = None
    for name, change in sorted(changes.items()):
        if not name.endswith(LOG) or change.size_bytes is None:
            continue
        log_path = os.path.join(recovered.log.path, name)
        size_bytes = size_of(recovered.log.access, log_path)
        base = offset_of(name) or 0
        require_unchanged(recovered.log, {base: recovered.before_read[base]})
        recovered.log.access.truncate_file(log_path, change.size_bytes)
        cut = size_bytes - change.size_bytes
        told = f"{name} from {size_bytes:,} to {change.size_bytes:,} bytes, {cut:,} torn bytes"
    return told


def _sync_logs(recovered: RecoveredLog) -> None:
    """The logs of a broker that was killed are perhaps in memory only, and so are their names.

    A round takes older records away for the sake of what stands in them.
    """
    log = recovered.log
    for base_offset in recovered.recovered:
        log.access.sync_file(os.path.join(log.path, file_name(base_offset, LOG)))
    log.access.sync_directory(log.path)


def _written(
    recovered: RecoveredLog, changes: Mapping[str, FileChange], segment_index_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of what was made again: indexes, then snapshots, then leader epochs."""
    made = {
        name: _data_of(recovered, change)
        for name, change in changes.items()
        if change.size_bytes is not None and not name.endswith(LOG)
    }
    for base_offset in recovered.recovered:
        names = file_name(base_offset, INDEX), file_name(base_offset, TIME_INDEX)
        offsets, times = (made.get(name, b"") for name in names)
        if max(len(offsets), len(times)) > segment_index_bytes:
            fitting = made_to_fit(SegmentIndexes(offsets, times, 0, None), segment_index_bytes)
            made.update(zip(names, fitting[:2], strict=True))
    yield from sorted(made.items(), key=lambda item: (_turn(item[0]), item[0]))


def _turn(name: str) -> int:
    if name == LEADER_EPOCH_CHECKPOINT:
        return 3
    return 2 if name.endswith(SNAPSHOT) else int(name.endswith(INDEX))


def _data_of(recovered: RecoveredLog, change: FileChange) -> bytes:
    if change.data is not None:
        return change.data
    path = os.path.join(recovered.log.path, change.name)
    return recovered.log.access.read_range(path, 0, change.size_bytes or 0)


def _make(files: Files, path: str, data: bytes) -> bool:
    """Make a file hold exactly data; whether it did not."""
    try:
        size_bytes = size_of(files, path)
        if files.read_range(path, 0, len(data)) == data:
            if size_bytes > len(data):
                files.truncate_file(path, len(data))
            return size_bytes > len(data)
    except FileNotFoundError:
        pass
    files.replace_file(path, data)
    return True


def _log_path(log: PartitionListing, base_offset: int) -> str:
    return os.path.join(log.path, file_name(base_offset, LOG))
