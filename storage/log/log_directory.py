"""One log directory of a log manager: whether it is online, its checkpoints, its marker.

Source: Kafka, LogManager, CheckpointFileWithFailureHandler; spec L-26 to L-28.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.formats import checkpoint, clean_shutdown
from storage.formats.checkpoint import TopicPartition
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.log.errors import KafkaStorageError
from storage.log.local_log import LogDirState
from storage.log.log import Log
from storage.log.log_cleaner import CleaningPauses

_AT_START = (checkpoint.RECOVERY_POINT, checkpoint.LOG_START)


class LogDirectory:
    """Shared by its logs, and the only writer of its checkpoints. Safe for threads.

    `lock` is held for each write, and for whatever else has to be one step with it: what is written
    is read, or computed, under the lock. Who holds it may take the lock of a log, never the other
    way round.
    """

    def __init__(self, files: Files, path: str, pauses: CleaningPauses) -> None:
        """Make the checkpoints that there have to be, as empty files."""
        self.path, self._files, self._pauses = path, files, pauses
        self.lock = threading.RLock()
        self._is_released = False
        self.state = LogDirState()
        self.was_clean = False
        self.is_loaded = False  # every log in it was
        self.is_live = True  # its failure, if there is one, has not been handled yet
        for name in _AT_START:
            self.make_checkpoint(name)

    def place(self, name: str) -> str:
        return os.path.join(self.path, name)

    def holds(self, log: Log) -> bool:
        return os.path.dirname(log.path) == self.path

    def release(self) -> None:
        """Write nothing from now on: the lock of the directory is about to be given back."""
        with self.lock:
            self._is_released = True

    # ---- the marker of a clean shutdown -------------------------------------------------------

    def take_marker(self) -> None:
        """Note whether the shutdown was clean; a crash from here on is an unclean one."""
        marker = self.place(CLEAN_SHUTDOWN)
        self.was_clean = self._files.exists(marker)
        if self.was_clean:
            self._files.remove(marker)
            self._files.sync_directory(self.path)

    def leave_marker(self) -> None:
        """Say that all logs were closed in good order, if all were loaded."""
        if self.was_clean or self.is_loaded:
            clean_shutdown.write(self.path, files=self._files)

    # ---- checkpoints --------------------------------------------------------------------------

    def make_checkpoint(self, name: str) -> None:
        path = self.place(name)
        if not self._files.exists(path):
            self._files.open_to_change(path, create=True).close()

    def read_or_none(self, name: str) -> dict[TopicPartition, int]:
        """The entries; none where the file cannot be read, which takes the directory offline."""
        try:
            return self.read(name)
        except KafkaStorageError:
            return {}

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The entries of a checkpoint. KafkaStorageError where it cannot be read."""

        def action() -> dict[TopicPartition, int]:
            try:
                return checkpoint.read(self.place(name), self._files)
            except CorruptFileError as error:
                raise OSError(str(error)) from error

        return self.state.reported(f"reading {name}", action)

    def write(self, name: str, entries: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint. KafkaStorageError where that fails, or after `release`."""
        what = f"writing {name}"
        with self.lock:
            if self._is_released:
                raise KafkaStorageError(f"{what}: the log manager has let go of {self.path}")
            self.state.reported(
                what, lambda: checkpoint.write(self.place(name), entries, self._files)
            )

    def write_recovery_points(self, logs: Mapping[TopicPartition, Log]) -> None:
        """From where on a start after a crash has to look at each log (L-27.4)."""
        points = {partition: log.recovery_point for partition, log in logs.items()}
        self._write_unless_failed(checkpoint.RECOVERY_POINT, points)

    def write_log_starts(self, logs: Mapping[TopicPartition, Log]) -> None:
        """Where logs begin that do not begin with their first segment (L-27.5)."""
        starts = {
            partition: log.log_start_offset
            for partition, log in logs.items()
            if log.log_start_offset > log.segments[0].base_offset
        }
        self._write_unless_failed(checkpoint.LOG_START, starts)

    def _write_unless_failed(self, name: str, entries: Mapping[TopicPartition, int]) -> None:
        try:
            self.write(name, entries)
        except KafkaStorageError:
            return  # the directory is offline now, which its logs will tell

    # ---- the cleaner's checkpoint -------------------------------------------------------------

    def move_cleaner_offset(
        self, partition: TopicPartition, offset: int | None, known: Iterable[TopicPartition]
    ) -> None:
        """Set or forget how far a log was cleaned; entries of logs that are unknown go, too."""
        try:
            with self.lock:
                found, kept = self.read(checkpoint.CLEANER_OFFSET), set(known)
                entries = {each: value for each, value in found.items() if each in kept}
                entries.pop(partition, None)
                if offset is not None:
                    entries[partition] = offset
                self.write(checkpoint.CLEANER_OFFSET, entries)
        except KafkaStorageError:
            return  # the directory is offline now, which its logs will tell

    @contextmanager
    def truncating(self, partition: TopicPartition, end: int, base: int | None) -> Iterator[None]:
        """A truncation of a log of the directory, as `LogOptions.truncating` says.

        The log is not cleaned meanwhile, and was cleaned up to what is its active segment then at
        most: else a tombstone that is written behind would be taken for clean, and the value that
        it deletes would come back. Its recovery point is not above its end: else what is written
        behind would not be looked at after a crash.

        Kafka lowers both afterwards. Here no crash leaves one above the log's end.
        """
        with nullcontext() if base is None else self._pauses.paused(partition), self.lock:
            # of a log that was moved, its copy's active segment may begin below what was cleaned
            self._lower(checkpoint.CLEANER_OFFSET, partition, end if base is None else base)
            self._lower(checkpoint.RECOVERY_POINT, partition, end)
            yield

    def _lower(self, name: str, partition: TopicPartition, offset: int) -> None:
        """Let an entry be no higher; under the lock."""
        entries = self.read(name)
        if entries.get(partition, 0) > offset:
            self.write(name, entries | {partition: offset})

    def cleaned_to(self) -> dict[TopicPartition, int]:
        """Return what the cleaner's checkpoint says.

        Nothing where it cannot be read, which takes the directory offline no sooner than somebody
        cleans.
        """
        try:
            return checkpoint.read(self.place(checkpoint.CLEANER_OFFSET), self._files)
        except (OSError, CorruptFileError):
            return {}

    def note_opened(self, partition: TopicPartition, log: Log, cleaned_to: int | None) -> None:
        """Let a log that ends below what its cleaner's checkpoint says count as dirty as a whole.

        Its end was cut off, or another log was cleaned. So does Kafka's cleaner (C-4.1), but at its
        next look, when records that it has never seen may lie below the checkpoint.
        """
        if cleaned_to is not None and cleaned_to > log.log_end_offset:
            with self.lock:
                self._lower(checkpoint.CLEANER_OFFSET, partition, log.log_start_offset)
