"""The leader epochs of a log, and where each began.

Source: Kafka, LeaderEpochFileCache; spec L-16.
"""

import os

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.formats import leader_epoch_checkpoint
from storage.formats.checkpoint import NotANumberError
from storage.formats.leader_epoch_checkpoint import (
    LEADER_EPOCH_CHECKPOINT,
    EpochEntry,
)
from storage.log.errors import IllegalArgumentError, NumberFormatError
from storage.log.offsets import UNKNOWN, EndOffset
from storage.log.scheduler import Scheduler


class LeaderEpochFileCache:
    """Epochs by rising number, each with its start offset; every change is in the file.

    Readers take no lock: so a change puts new epochs in the place of the old ones, in one step.
    """

    def __init__(self, files: Files, directory: str, scheduler: Scheduler) -> None:
        """Read the file, which is made if it is not there.

        Raise OSError where it cannot be read, and NumberFormatError for a field of an entry that is
        no number (F-13.2).
        """
        self._files, self._directory, self._scheduler = files, directory, scheduler
        self._path = os.path.join(directory, LEADER_EPOCH_CHECKPOINT)
        if not files.exists(self._path):
            files.open_to_change(self._path, create=True).close()
        # by epoch, rising; each change puts another one in its place
        self.starts: dict[int, int] = {}
        try:
            found = leader_epoch_checkpoint.read(self._path, files)
        except NotANumberError as error:
            raise NumberFormatError(str(error)) from None
        except CorruptFileError as error:
            raise OSError(str(error)) from error
        for entry in found:
            self._put(entry.epoch, entry.start_offset)

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(*item) for item in self.starts.items()]

    @property
    def latest(self) -> int | None:
        return next(reversed(self.starts), None)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that an epoch begins at an offset; what is later and not in order goes."""
        if self._put(epoch, start_offset):
            self._write()

    def is_assigned(self, epoch: int, start_offset: int) -> bool:
        """Return whether nothing is to be noted: it is the latest epoch, and begins by then."""
        return epoch == self.latest and start_offset >= self.starts[epoch]

    def _put(self, epoch: int, start_offset: int) -> bool:
        if epoch < 0 or start_offset < 0:
            raise IllegalArgumentError(f"leader epoch {epoch} from offset {start_offset}")
        if self.is_assigned(epoch, start_offset):
            return False
        kept = dict(self.starts)
        while kept and not ((last := next(reversed(kept))) < epoch and kept[last] < start_offset):
            del kept[last]
        self.starts = {**kept, epoch: start_offset}
        return True

    def end_offset(self, epoch: int, log_end_offset: int) -> EndOffset:
        """Return where an epoch ends; -1, -1 where that is not known (L-16.2)."""
        epochs = self.starts
        if epoch == UNKNOWN or not epochs:
            return EndOffset(UNKNOWN, UNKNOWN)
        if epoch == next(reversed(epochs)):
            return EndOffset(epoch, log_end_offset)
        above = next((start for e, start in epochs.items() if e > epoch), None)
        if above is None:
            return EndOffset(UNKNOWN, UNKNOWN)
        below = [e for e in epochs if e <= epoch]
        return EndOffset(below[-1] if below else epoch, above)

    def epoch_for(self, offset: int) -> int | None:
        """The epoch that an offset was written in; None where all begin later."""
        found = [epoch for epoch, start in self.starts.items() if start <= offset]
        return found[-1] if found else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at an offset or later."""
        removed = [e for e, start in self.starts.items() if start >= end_offset]
        if end_offset >= 0 and removed:
            self.starts = {e: start for e, start in self.starts.items() if start < end_offset}
            self._scheduler.schedule_once(self._write_if_exists)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs before an offset; the one that it is in begins at it now."""
        removed = [e for e, start in self.starts.items() if start <= start_offset]
        if removed:
            kept = {e: start for e, start in self.starts.items() if start > start_offset}
            self.starts = {removed[-1]: start_offset, **kept}
            self._scheduler.schedule_once(self._write_if_exists)

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name."""
        self._directory = directory
        self._path = os.path.join(directory, LEADER_EPOCH_CHECKPOINT)

    def forget(self) -> None:
        """Forget all; the file stays as it is."""
        self.starts = {}

    def clear(self) -> None:
        """Forget all, also in the file."""
        self.starts = {}
        self._write()

    def _write(self) -> None:
        leader_epoch_checkpoint.write(self._path, self.entries, self._files)

    def _write_if_exists(self) -> None:
        if self._files.is_directory(self._directory):
            self._write()
