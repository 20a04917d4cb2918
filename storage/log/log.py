"""One partition's log: append, read, look up, truncate, delete, as Kafka 4.3.1 does it.

    scheduler = ManualScheduler(clock)
    with Log.open("/data/t-0", LogOptions(clock=clock, scheduler=scheduler)) as log:
        log.append_as_leader(batch)
        data = log.read(0).read()

Source: Kafka, UnifiedLog; spec L-17 to L-25.
"""

import threading
from collections.abc import Sequence
from typing import Self

from storage.arguments import PathArg, path_of, require_a
from storage.files.file_pool import FilePool
from storage.formats.txn_index import AbortedTxn
from storage.log import appending, log_state
from storage.log.batches import Bytes
from storage.log.loading import LogOptions as LogOptions
from storage.log.loading import opened_alone
from storage.log.local_log import ReadResult
from storage.log.log_config import LogConfig
from storage.log.log_state import (
    CleanedGroup,
    CleanerView,
    FetchIsolation,
    LogState,
    offset_by_timestamp,
)
from storage.log.offsets import EndOffset, OffsetMetadata, OffsetSnapshot, TimestampAndOffset
from storage.log.plain_append import AppendedBatches, BatchAppends, PlainAppends
from storage.log.producer_state_entry import AppendOrigin, VerificationGuard, VerificationStateEntry
from storage.log.segment import LogSegment
from storage.log.validation import BY_CLIENT, AppendRequest, LogAppendInfo


class Log:
    """One log: one writer at a time, by a lock of its own; any number of readers beside it.

    Bytes are on disk after `flush`, `close`, and, up to the new segment, after a roll. A reader
    sees whole appends: what is being written is not seen before its end. At most
    LogOptions.max_open_files of its files are open, and one more for each call that is under way.
    """

    def __init__(self, made: LogState) -> None:
        """See `open`."""
        self._state, self._lock = made, threading.RLock()
        self._local, self._watermarks = made.local, made.watermarks
        self.producers, self.epochs = made.producers, made.epochs
        self._plain_appends = PlainAppends(made)

    @classmethod
    def open(cls, path: PathArg, options: LogOptions) -> Self:
        """Load the log in a directory of a partition, or begin one.

        Of a directory that was to be deleted nothing is recovered (L-25.4). Raise UsageError
        for what is no path or no options; CopyMarkedError in a copy that nobody is to change, where
        `storage.arrow.read` reads; LogDirLockedError where a manager, of this process or another,
        or a broker works in the log directory.
        """
        require_a(LogOptions, "options", options, "LogOptions")
        return cls(opened_alone(path_of("path", path), options))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Flush and close, or after an error only let go of the files."""
        is_closed = False
        try:
            if kind is None:
                self.flush(force=True)
                self.close()
                is_closed = True
        finally:
            if not is_closed:
                self.close_handlers()

    # ---- what stands where --------------------------------------------------------------------

    @property
    def path(self) -> str:
        return self._local.place.path

    @property
    def now_ms(self) -> int:
        """The time by the log's clock."""
        return self._state.now_ms

    @property
    def files(self) -> FilePool:
        """The files through which the log works."""
        return self._local.files

    @property
    def config(self) -> LogConfig:
        return self._local.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        """Takes effect with the next use; what a segment was opened with stays."""
        self._local.config = config

    @property
    def log_start_offset(self) -> int:
        return self._watermarks.log_start

    @property
    def log_end_offset(self) -> int:
        return self._local.end_offset

    @property
    def high_watermark(self) -> int:
        return self._watermarks.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self._watermarks.last_stable

    @property
    def first_unstable_offset(self) -> int | None:
        unstable = self._watermarks.first_unstable
        return None if unstable is None else unstable.offset

    @property
    def recovery_point(self) -> int:
        return self._local.recovery_point

    @property
    def flushed_ms(self) -> int:
        """When it was flushed last, or opened."""
        return self._local.flushed_ms

    @property
    def size_bytes(self) -> int:
        return self._local.segments.size_bytes

    @property
    def segments(self) -> list[LogSegment]:
        """The segments by rising base offset; the last one is active."""
        return list(self._local.segments)

    # ---- append -------------------------------------------------------------------------------

    def append_as_leader(self, data: bytes, request: AppendRequest = BY_CLIENT) -> LogAppendInfo:
        """Give batches offsets, and append them.

        Raise a LogError where they are refused; what the append had done by then stays done
        (`appending`).
        """
        with self._lock:
            done = self._plain_appends.append(data, request)
        return self._append(data, request) if done is None else done

    def append_batches_as_leader(
        self, data: Bytes, request: AppendRequest = BY_CLIENT
    ) -> AppendedBatches:
        """Append many batches that follow each other in data, as append_as_leader does one by one.

        No other append comes between them. Bytes of a batch that is cut short at the end are left.

        The log, its producers and its files are as after those appends; but many batches without a
        producer take one write. Raise BatchAppendError where a batch is refused or cannot be
        written: those before it are appended. Where the disk fails, the batch and later ones may be
        in the `.log`, past the end of the log: one that is opened then may find them.
        """
        with self._lock:
            return BatchAppends(self._plain_appends, self.append_as_leader, request).append(data)

    def append_as_follower(self, data: bytes, leader_epoch: int) -> LogAppendInfo:
        """Append batches with the offsets that they have."""
        request = AppendRequest(origin=AppendOrigin.REPLICATION, leader_epoch=leader_epoch)
        return self._append(data, request)

    def _append(self, data: bytes, request: AppendRequest) -> LogAppendInfo:
        info = appending.analyze(self._state, data, request)
        if info.valid_bytes <= 0:
            return info
        with self._lock:
            return self._local.directory.guarded(
                "appending",
                lambda: appending.append(self._state, bytearray(data), info, request),
            )

    def start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """Return what the append that begins a transaction has to hand in.

        SENTINEL if it needs nothing, as the transaction is going on.
        """
        new = VerificationStateEntry(
            created_ms=self.now_ms,
            lowest_sequence=sequence,
            epoch=epoch,
            supports_epoch_bump=supports_epoch_bump,
        )
        with self._lock:
            return self.producers.start_verification(producer_id, new)

    # ---- read and look up ---------------------------------------------------------------------

    def read(
        self,
        start_offset: int,
        max_bytes: int = 1024 * 1024,
        isolation: FetchIsolation = FetchIsolation.LOG_END,
        min_one_message: bool = True,
    ) -> ReadResult:
        """Give bytes from the batch that holds an offset on, of one segment.

        Raise OffsetOutOfRangeError for an offset outside of the log.
        """
        self._watermarks.require_readable(start_offset)
        watermarks, is_committed = self._watermarks, isolation is FetchIsolation.COMMITTED
        if isolation is FetchIsolation.LOG_END:
            limit = self._local.end
        else:
            with self._lock:
                limit = (
                    watermarks.last_stable_place()
                    if is_committed
                    else watermarks.high_watermark_place()
                )
        return self._local.directory.guarded(
            "reading the log",
            lambda: self._local.read(start_offset, max_bytes, min_one_message, limit, is_committed),
        )

    def offset_by_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """The first record that is not older, or one of the special times of `log_state`."""
        return self._local.directory.guarded(
            "looking up a time", lambda: offset_by_timestamp(self._state, timestamp_ms)
        )

    def place_of(self, offset: int) -> OffsetMetadata:
        """The place of the batch that holds an offset; the offset alone if none does."""
        return self._watermarks.place_of(offset)

    def offset_snapshot(self) -> OffsetSnapshot:
        """All the ends of the log, with their places."""
        with self._lock:
            watermarks = (
                self._watermarks.high_watermark_place(),
                self._watermarks.last_stable_place(),
            )
            return OffsetSnapshot(self.log_start_offset, self._local.end, *watermarks)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTxn]:
        """Return the aborted transactions from the segment of an offset on, for the cleaner."""
        log_start = self.log_start_offset
        return self._local.directory.guarded(
            "reading aborted transactions",
            lambda: self._local.aborted_transactions(log_start, start_offset, end_offset),
        )

    def end_offset_of_epoch(self, epoch: int) -> EndOffset | None:
        """Return where a leader epoch ends; None where that is not known."""
        found = self.epochs.end_offset(epoch, self.log_end_offset)
        return None if found.offset < 0 else found

    def has_late_transaction(self) -> bool:
        return self.producers.has_late_transaction(self._state.now_ms)

    # ---- high watermark -----------------------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set it, also back, within the log; give where it is."""
        with self._lock:
            return self._watermarks.set_high_watermark(OffsetMetadata(offset))

    def increment_high_watermark(self, to: OffsetMetadata) -> OffsetMetadata | None:
        """Move the high watermark up, as a leader. Return what it was, None if it did not move."""
        with self._lock:
            return self._watermarks.increment_high_watermark(to)

    def follow_high_watermark(self, offset: int) -> int | None:
        """Set the high watermark, as a follower. Return where it is, None if it did not move."""
        with self._lock:
            before = self.high_watermark
            after = self.update_high_watermark(offset)
            return None if after == before else after

    def follow_end(self) -> None:
        """Move the high watermark to the log end, as where there is one replica."""
        self.increment_high_watermark(self._local.end)

    # ---- roll, flush, delete, truncate --------------------------------------------------------

    def roll(self) -> LogSegment:
        """Begin a new segment."""
        with self._lock:
            return log_state.roll(self._state)

    def flush(self, force: bool = False) -> None:
        """Sync all files. force: those of the active segment even where nothing is new."""
        log_state.flush(self._state, self.log_end_offset, including=force)

    def flush_below(self, offset: int) -> None:
        """Sync what lies below an offset."""
        log_state.flush(self._state, offset, including=False)

    def sync(self) -> None:
        """Sync the files that exist. `flush` makes more, and moves the recovery point."""
        self._local.directory.guarded("flushing", self._local.sync)

    def write_indexes(self) -> None:
        """Do nothing: index entries are in the files at once. Programs of before may call it."""

    def increment_log_start(self, offset: int) -> bool:
        """Let the log begin later, at most at the high watermark; whether it does."""
        with self._lock:
            return self._local.directory.guarded(
                "moving the log start",
                lambda: log_state.increment_log_start(self._state, offset),
            )

    def delete_old_segments(self) -> int:
        """Apply retention; give how many segments were selected."""
        with self._lock:
            return log_state.delete_old_segments(self._state)

    def view(self) -> CleanerView:
        """The log at one moment between two appends."""
        with self._lock:
            return log_state.view_of(self._state)

    def replace_segments(self, cleaned: CleanedGroup, were: Sequence[LogSegment]) -> bool:
        """Put cleaned segments in the place of others, beside appends and reads.

        were: the segments that were cleaned. Where the log has others by now, as it was truncated
        or its retention has applied, nothing is done, and False returned.
        """
        with self._lock:
            if not log_state.is_unchanged(self._state, were):
                return False
            self._local.directory.guarded(
                "replacing segments", lambda: log_state.swap_in(self._state, cleaned)
            )
            return True

    def truncate_to(self, offset: int) -> bool:
        """End the log at an offset; whether anything was cut off."""
        with log_state.owner_context(self._state, offset), self._lock:
            return self._local.directory.guarded(
                "truncating", lambda: log_state.truncate_to(self._state, offset)
            )

    def truncate_fully(self, offset: int, log_start: int | None = None) -> None:
        """Delete everything, and go on at an offset."""
        with log_state.owner_context(self._state, offset, is_full=True), self._lock:
            self._local.directory.guarded(
                "truncating",
                lambda: log_state.truncate_fully(self._state, offset, log_start),
            )

    # ---- producers and epochs -----------------------------------------------------------------

    def assign_epoch(self, epoch: int, offset: int) -> None:
        """Note that a leader epoch begins at an offset."""
        with self._lock:
            self._local.directory.reported(
                "noting a leader epoch", lambda: self.epochs.assign(epoch, offset)
            )

    def take_producer_snapshot(self) -> None:
        with self._lock:
            self._local.require_open()
            self.producers.take_snapshot()

    def remove_expired_producers(self) -> None:
        with self._lock:
            self.producers.remove_expired(self._state.now_ms)

    def load_producer_state(self, end: int) -> None:
        """Rebuild the producers, and move the high watermark to the log end."""
        with self._lock:
            log_state.rebuild(self._state, end)
            self._watermarks.update_first_unstable()
            self._watermarks.set_high_watermark(self._local.end)

    # ---- life ---------------------------------------------------------------------------------

    def prepare_for_close(self) -> None:
        """Trim files as a broker does before its last flush, since 4.4 (V-7).

        Raise a LogError where that fails.
        """
        with self._lock:
            self._local.directory.guarded("closing", self._local.prepare_for_close)

    def close(self, for_good: bool = False) -> None:
        """Take a snapshot of the producers, and close all files. A second call does nothing new.

        Kafka's broker flushes before; `with` does it, too. for_good: refuse all that comes later.
        """
        with self._lock:
            self._local.require_open()

            def action() -> None:
                if self.producers.take_snapshot() is not None:
                    self.files.sync_directory(self.path)
                self._local.close()

            self._local.directory.guarded("closing", action)
            self._local.is_closed = for_good

    def rename_directory(self, name: str, goes_on: bool) -> None:
        """Give the partition's directory another name in the same log directory.

        goes_on: the log is used on under that name; else it is to be deleted, or kept aside.
        """
        with self._lock:
            self._local.directory.guarded(
                f"renaming {self.path}",
                lambda: log_state.rename_directory(self._state, name, goes_on),
            )

    def delete(self) -> None:
        """Remove the log from disk, at once; every later operation raises KafkaStorageError."""
        with self._lock:
            self._local.directory.guarded(
                f"deleting {self.path}", lambda: log_state.delete_directory(self._state)
            )

    def close_handlers(self) -> None:
        """Let go of all files, as after an error or as if the process had ended."""
        with self._lock:
            self._local.is_closed = True
            self._local.segments.close_handles()
