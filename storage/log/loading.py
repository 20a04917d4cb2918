"""Opens a log: settles half-done files, loads segments, cuts off a damaged end.

1. What a cleaning had not finished goes.
2. A swap that was complete is finished: what it replaces goes, its files get their names. Then
   the files go that were to be deleted.
3. Indexes without a `.log` go; a segment without an offset index is recovered.
4. A segment with offsets too far apart is split where it is recovered.
5. After an unclean shutdown, each segment from the recovery point on is recovered. What is cut off
   one takes all later ones with it.
6. The producers are rebuilt.

`opened_parts` loads, or begins, a log in use; `rehearsed` says what would come of it, with no file
changed. The split of step 4:

1. The files of the new segments (`storage.log.splitting`) are written, with `.cleaned` at their
   end, and synced.
2. They take its place (`local_log`). A start that comes before the last of them has `.swap` at
   its end finds the old segment as it was, and splits it again.
3. The old files are deleted where the segment was loaded already; else a new one of the same base
   offset takes their names.

Source: Kafka, UnifiedLog.create, LogLoader, LocalLog.splitOverflowedSegment; spec L-8.4, L-25,
F-16.1, C-15.5 to C-15.7, C-16.3 to C-16.6.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from storage.file_names import (
    CLEANED,
    DELETE_DIR,
    DELETED,
    INDEX_SUFFIXES,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    UNFINISHED_SUFFIXES,
    file_name,
)
from storage.files.file_pool import pooled
from storage.files.files import Files, remove_if_exists
from storage.files.local import LOCAL
from storage.files.overlay import FileChange, OverlayFiles
from storage.formats.copy_marks import require_may_change
from storage.formats.txn_index import AbortedTxn
from storage.kafka_versions import NEWEST, KafkaVersion
from storage.log.batches import Batch
from storage.log.errors import (
    CorruptIndexError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidOffsetError,
    LogSegmentOffsetOverflowError,
    NoSuchElementError,
)
from storage.log.leader_epoch_file_cache import LeaderEpochFileCache
from storage.log.local_log import LocalLog, LogDirState, LogSegments, end_of, replace_segments
from storage.log.log_config import LogConfig
from storage.log.log_dir_lock import require_nobody
from storage.log.log_state import LogState, Truncating, Watermarks, delete_snapshots, no_owner
from storage.log.producer_state_manager import (
    ProducerStateManager,
    ProducerStateManagerConfig,
    SnapshotFiles,
    aborted_in,
    rebuild_producers,
    required_offset,
)
from storage.log.scheduler import ManualScheduler, Scheduler
from storage.log.segment import Clock, LogPlace, LogSegment
from storage.log.segment_recovery import RecoveredSegment, recover_segment
from storage.log.swap import apply_steps, complete_swaps, swap_settlement

if TYPE_CHECKING:
    from storage.log.splitting import IndexSettings, NewSegment


_MAX_LONG = 2**63 - 1

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingState:
    """What was known of a log when it was closed, or when its process ended."""

    is_clean: bool = True
    recovery_point: int = 0
    log_start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """`directory` and `producer_settings` are shared by the logs of one log directory.

    max_open_files: of the log, however many segments it has; None: 500, or half of what the process
    may have open where that is less. files may be a FilePool, which logs that share it share with
    its own number.

    truncating: is entered before a truncation, without the log's lock, with the offset at which the
    log will end, and the base offset of the segment that will be the active one; None where no
    other is cut.

    may_split: a segment with offsets too far apart is split; False: a LogSegmentOffsetOverflowError
    is raised. on_segments_left: is called with the number of segments that are still to be
    recovered after an unclean shutdown, whenever that changes.
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
    truncating: Truncating = no_owner
    may_split: bool = True
    on_segments_left: Callable[[int], object] = lambda _: None
    kafka: KafkaVersion = NEWEST  # whose answer is given where the versions differ


def options_at(now_ms: int, **more: Any) -> LogOptions:
    """Return options of a log that is opened and closed at one time, which nobody else uses."""

    def clock() -> int:
        return now_ms

    return LogOptions(clock=clock, scheduler=ManualScheduler(clock), **more)


class LoadedOffsets(NamedTuple):
    log_start: int
    recovery_point: int
    end: int


class LoadingReport(NamedTuple):
    """What a loading had to recover, in this order, and what came of it."""

    recovered: list[RecoveredSegment]  # of one that was recovered twice, both
    ends_below_start: list[int]  # where the log would end, below its start: so all was deleted


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
    loader = LogLoader(local, options, epochs, producers)
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


class _SplitError(Exception):
    """A segment was split: what was being done with all of them starts again."""


class LogLoader:
    """Loads one log, whose segments are put into `local`."""

    def __init__(
        self,
        local: LocalLog,
        options: LogOptions,
        epochs: LeaderEpochFileCache,
        producers: ProducerStateManager,
    ) -> None:
        self._local, self._options, self._state = local, options, options.state
        self._epochs, self._producers = epochs, producers
        self._place = local.place
        self._files = local.files
        self._snapshots: SnapshotFiles | None = None  # as the last recovery has left them
        self.report = LoadingReport([], [])

    def load(self) -> LoadedOffsets:
        """Load the segments, and build the state of producers."""
        state = self._state
        self._settle()
        self._unless_split(self._load_segments)
        segments = self._local.segments
        if self._place.path.endswith(DELETE_DIR):
            recovery_point, end = self._unrecovered()
        else:
            recovery_point, end = self._unless_split(self._recover)
            index_bytes = self._local.config.segment_index_bytes
            segments.active.resize_indexes(index_bytes, keeps_files=True)
        if end > _MAX_LONG:  # Kafka counts on from the lowest offset there is
            raise InvalidOffsetError(f"{self._place.path}: ends at offset {end}, which no log has")
        self._epochs.truncate_from_end(end)
        log_start = max(state.log_start, segments.first.base_offset)
        self._epochs.truncate_from_start(state.log_start)
        self._producers.remove_stray_snapshots(segments.bases)
        now_ms = self._place.clock()
        rebuild_producers(self._producers, segments.all, log_start, end, now_ms, state.is_clean)
        return LoadedOffsets(log_start, recovery_point, end)

    # ---- half-done files ----------------------------------------------------------------------

    def _names(self) -> list[str]:
        return sorted(self._files.list_names(self._place.path)[1])

    def _path(self, name: str) -> str:
        return os.path.join(self._place.path, name)

    def _settle(self) -> None:
        """Settle what was cut short, and remove what is to be deleted.

        Kafka removes that first. But what takes its place may be in memory only: so it goes last,
        once the names that are left are on disk.
        """
        names = self._names()
        all_names = "\0".join(names)
        if not any(suffix in all_names for suffix in UNFINISHED_SUFFIXES):  # as nearly always
            return
        deleted = [
            name
            for name in names
            if name.endswith(DELETED) and not name.endswith(".checkpoint" + DELETED)
        ]
        self._settle_swaps([name for name in names if not name.endswith(DELETED)])
        if deleted:
            self._files.sync_directory(self._place.path)
        for name in deleted:
            remove_if_exists(self._files, self._path(name))

    def _settle_swaps(self, left: list[str]) -> None:
        """Settle the swaps of these names."""
        half_done = [name for name in left if name.endswith((CLEANED, SWAP))]
        if not half_done:
            return
        for name in half_done:
            required_offset(name)  # each has to have one
        config = self._local.config
        ends = {base: end_of(self._place, base, config, SWAP) for base in complete_swaps(left)}
        # with an index that was missing beside a swap
        left = [name for name in self._names() if not name.endswith(DELETED)]
        decided = swap_settlement(left, ends, as_kafka=True)
        apply_steps(self._files, self._place.path, decided.steps)

    # ---- segments -----------------------------------------------------------------------------

    def _unless_split(self, step: Callable[[], Result]) -> Result:
        """Do a step, from its beginning again where it has had to split a segment."""
        while True:
            try:
                return step()
            except _SplitError:
                continue

    def _load_segments(self) -> None:
        self._local.segments.close()
        self._local.segments.clear()
        names = self._names()
        present = frozenset(names)
        for name in names:
            if name.endswith(LOG):
                base = required_offset(name)
                self._load_segment(base, file_name(base, TIME_INDEX) not in present)
            elif name.endswith(INDEX_SUFFIXES) and not _has_log(name, present):
                remove_if_exists(self._files, self._path(name))

    def _load_segment(self, base: int, is_missing: bool) -> None:
        segment = LogSegment(self._place, base, self._local.config)
        try:
            segment.check(time_index_is_missing=is_missing)
        except (CorruptIndexError, FileNotFoundError):
            self._recover_segment(segment)
        self._local.segments.add(segment)

    def _recover_segment(self, segment: LogSegment) -> int:
        """Recover a segment, with producers of its own; give the bytes cut off."""
        producers = ProducerStateManager(self._listed_snapshots(), self._producers.settings)
        start, now_ms = self._state.log_start, self._place.clock()
        segments = self._local.segments.all
        rebuild_producers(producers, segments, start, segment.base_offset, now_ms, False)
        try:
            found = recover_segment(segment, producers, self._epochs)
        except LogSegmentOffsetOverflowError as error:
            if not self._options.may_split:
                raise
            assert error.place is not None, "a recovery says where it ended"
            rest = segment.log.batches(error.place[1])
            aborted = [*segment.txn_index.entries(), *aborted_in(producers, rest)]
            gone = split(self._local, segment, aborted)
            delete_snapshots(self._local, self._producers, gone)
            self._snapshots = None
            raise _SplitError from error
        producers.take_snapshot()
        self.report.recovered.append(found)
        return found.cut_bytes

    def _listed_snapshots(self) -> SnapshotFiles:
        """Those in the directory, which no one but one recovery after the other changes."""
        if self._snapshots is None:
            self._snapshots = SnapshotFiles(self._files, self._place.path)
        return self._snapshots

    def _recover(self) -> tuple[int, int]:
        """Cut off a damaged end after an unclean shutdown; recovery point and end of the log."""
        state, segments = self._state, self._local.segments
        if not state.is_clean:
            self._recover_unflushed()
        end = self._end_unless_below_start()
        if not len(segments):
            first = LogSegment(self._place, state.log_start, self._local.config, is_new=True)
            segments.add(first)
        if state.is_clean and end is not None:
            return end, end
        if end is None:
            end = segments.active.next_offset()
        return min(state.recovery_point, end), end

    def _unrecovered(self) -> tuple[int, int]:
        """A log that is to be deleted counts as empty, whatever is in it (L-25.4)."""
        if not len(self._local.segments):
            self._local.segments.add(LogSegment(self._place, 0, self._local.config, is_new=True))
        return 0, 0

    def _recover_unflushed(self) -> None:
        unflushed = self._local.segments.values(self._state.recovery_point, _MAX_LONG)
        for number, segment in enumerate(unflushed):
            self._options.on_segments_left(len(unflushed) - number)
            try:
                cut = self._recover_segment(segment)
            except InvalidOffsetError as error:  # Kafka: after an error of the disk, too
                base = segment.base_offset
                cut, (_, position) = segment.truncate_to(base), error.place or (base, 0)
                self.report.recovered.append(RecoveredSegment(base, 0, cut, base, position))
            if cut:
                self._remove(unflushed[number + 1 :])
                break
        self._options.on_segments_left(0)

    def _end_unless_below_start(self) -> int | None:
        """The end of the log; None where it lies below the log start, and all is deleted."""
        segments = self._local.segments
        if not len(segments):
            return None
        end = segments.active.next_offset()
        if end >= self._state.log_start:
            return end
        self.report.ends_below_start.append(end)
        self._local.remove(segments)  # their snapshots go at once, below
        self._epochs.clear()
        self._producers.truncate_fully(self._state.log_start)
        return None

    def _remove(self, segments: list[LogSegment]) -> None:
        self._local.remove(segments)
        delete_snapshots(self._local, self._producers, segments)


def _has_log(name: str, present: frozenset[str]) -> bool:
    """Return whether the `.log` that an index belongs to exists."""
    digits = name[:OFFSET_DIGITS]
    if digits.isdigit() and name[OFFSET_DIGITS:] in INDEX_SUFFIXES and digits + LOG in present:
        return True  # as nearly always; and its offset is looked at with the `.log`
    return file_name(required_offset(name), LOG) in present


def split(local: LocalLog, segment: LogSegment, aborted: Sequence[AbortedTxn]) -> list[LogSegment]:
    """Put several segments in the place of one; give it where no new one has its base offset.

    aborted: the aborted transactions whose markers it holds. Raise IllegalArgumentError where its
    last offset does fit, as where one in the middle is wrong, and where a new index would be full.
    """
    end = segment.next_offset()
    if end <= segment.base_offset or segment.holds(end - 1):
        raise IllegalArgumentError(
            f"segment {segment.base_offset} ends at offset {end}: there is nothing to split"
        )
    from storage.log.splitting import IndexSettings  # loads kernels

    limits = IndexSettings(local.config.index_interval_bytes, local.config.segment_index_bytes)
    planned = _planned(segment, aborted, limits)
    stems = {base: _stem(local, base) for base in planned}
    written: dict[int, dict[str, str]] = {}
    try:
        for base, stem in stems.items():
            contents = planned[base].files(local.files, segment.path(LOG), limits)
            written[base] = {kind: stem + kind + CLEANED for kind in contents}
            _write(local, stem, contents)
            local.files.set_modified(stem + LOG + CLEANED, segment.last_modified_ms)
    except BaseException:
        for stem in stems.values():
            _remove(local, stem)
        raise
    is_loaded = any(each is segment for each in local.segments)
    for put in replace_segments(local, [segment] if is_loaded else [], written):
        put.bytes_since_entry = planned[put.base_offset].bytes_since_entry
    if is_loaded:
        return [] if segment.base_offset in written else [segment]
    # Kafka's own way: an old one that was not loaded is replaced by the one of its base offset
    # alone. Without such a one it stays, after those that its batches are in.
    segment.close_handles()
    return []


def _planned(
    segment: LogSegment, aborted: Sequence[AbortedTxn], limits: "IndexSettings"
) -> "dict[int, NewSegment]":
    """Give the new segments by rising base offset."""
    from storage.log.splitting import SplitBatch, plan_split

    batches = (
        SplitBatch(b.position, b.size_bytes, b.base_offset, b.last_offset, b.max_timestamp)
        for b in _whole_batches(segment)
    )
    planned = plan_split(batches, aborted, limits.interval_bytes)
    for new in planned:
        if new.indexes.problem:
            raise IllegalStateError(f"no batch fits a segment of base {new.base_offset}")
        if problem := new.why_refused(limits):
            raise IllegalArgumentError(f"segment {segment.base_offset} cannot be split: {problem}")
    by_base = {new.base_offset: new for new in sorted(planned, key=lambda new: new.base_offset)}
    if len(by_base) < len(planned):
        raise IllegalStateError(f"two parts of {segment.base_offset} begin at the same offset")
    return by_base


def _stem(local: LocalLog, base_offset: int) -> str:
    return os.path.join(local.place.path, file_name(base_offset, ""))


def _whole_batches(segment: LogSegment) -> Iterator[Batch]:
    position = 0
    for batch in segment.log.batches():
        yield batch
        position = batch.position + batch.size_bytes
    if position < segment.size_bytes:
        raise NoSuchElementError(f"no batch at byte {position} of {segment.base_offset}")


def _write(local: LocalLog, stem: str, contents: Mapping[str, Iterator[bytes]]) -> None:
    _remove(local, stem)  # what an earlier attempt has left
    for kind, pieces in contents.items():
        file, position = local.files.open_to_change(stem + kind + CLEANED, create=True), 0
        try:
            for data in pieces:
                file.write(position, data)
                position += len(data)
            file.sync()
        finally:
            file.close()


def _remove(local: LocalLog, stem: str) -> None:
    for kind in SEGMENT_SUFFIXES:
        remove_if_exists(local.files, stem + kind + CLEANED)
