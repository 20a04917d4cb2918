"""The snapshots of producers in the directory of a log, by their offsets.

They are those of the last listing, and what was done since; so loading a log of many segments
lists its directory once. Source: Kafka, ProducerStateManager.snapshots; spec L-15.
"""

import contextlib
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from storage.errors import CorruptFileError
from storage.file_names import DELETED, SNAPSHOT, file_name, offset_of
from storage.files.files import Files, remove_if_exists
from storage.formats import producer_snapshot
from storage.formats.producer_snapshot import ProducerEntry
from storage.log.errors import NumberFormatError


def required_offset(name: str) -> int:
    """Return the offset before the first dot. Raise NumberFormatError where there is none."""
    offset = offset_of(name)
    if offset is None:
        raise NumberFormatError(f"{name} does not begin with an offset")
    return offset


class SnapshotFiles:
    """The snapshot files of a log. Who calls holds the log's lock."""

    def __init__(self, files: Files, directory: str, offsets: Iterable[int] | None = None) -> None:
        """offsets: of the files, where they are known; None: the directory is listed."""
        self._files, self._directory = files, directory
        self._offsets = sorted(offsets or ())  # rising
        self._may_be_gone = offsets is not None
        if offsets is None:
            self.look()

    def move_to(self, directory: str) -> None:
        """The directory of the log has got another name."""
        self._directory = directory

    def look(self) -> None:
        """List the files. Raise NumberFormatError for one without an offset."""
        self._offsets = sorted({required_offset(name) for name in self._names()})

    def listed(self) -> list[int]:
        """Return the offsets of the files, rising. Raise FileNotFoundError without a directory."""
        found = {offset_of(name) for name in self._names()}
        return sorted(offset for offset in found if offset is not None)

    def _names(self) -> list[str]:
        names = self._files.list_names(self._directory)[1]
        return [name for name in names if name.endswith(SNAPSHOT)]

    def path(self, offset: int) -> str:
        return os.path.join(self._directory, file_name(offset, SNAPSHOT))

    @property
    def offsets(self) -> tuple[int, ...]:
        """Rising."""
        return tuple(self._offsets)

    @property
    def latest(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def outside(self, start: int, end: int) -> list[int]:
        """Those that are not above start, or are above end."""
        first, last = bisect_right(self._offsets, start), bisect_right(self._offsets, end)
        return [*self._offsets[:first], *self._offsets[max(first, last) :]]

    def read(self, offset: int) -> list[ProducerEntry]:
        """Return what one holds; CorruptFileError where it is damaged.

        One that is gone since others listed it counts as damaged. In a log that is in use that is
        a FileNotFoundError, as in Kafka: its directory is gone.
        """
        path = self.path(offset)
        try:
            return producer_snapshot.read(path, self._files)
        except FileNotFoundError as error:
            if not self._may_be_gone:
                raise
            raise CorruptFileError(path, 0, "the file is gone") from error

    def write(self, offset: int, data: bytes, sync: bool) -> str:
        """Make one, over one of the same offset; give its path."""
        path = self.path(offset)
        file = self._files.open_to_change(path, create=True)
        try:
            file.write(0, data)
            if sync:
                file.sync()
        finally:
            file.close()
        at = bisect_left(self._offsets, offset)
        if self._offsets[at : at + 1] != [offset]:
            self._offsets.insert(at, offset)
        return path

    def flush(self, path: str) -> None:
        """Sync one; it is no error if it is gone."""
        with contextlib.suppress(FileNotFoundError):
            self._files.sync_file(path)

    def remove(self, offset: int) -> None:
        """It is no error if it is gone."""
        self._forget(offset)
        remove_if_exists(self._files, self.path(offset))

    def mark_deleted(self, offset: int) -> str | None:
        """Rename one, and give the path by which it is to be removed later; None without one."""
        if not self._forget(offset):
            return None
        path = self.path(offset)
        try:
            self._files.rename(path, path + DELETED)
        except FileNotFoundError:
            return None
        return path + DELETED

    def _forget(self, offset: int) -> bool:
        at = bisect_left(self._offsets, offset)
        is_known = self._offsets[at : at + 1] == [offset]
        if is_known:
            del self._offsets[at]
        return is_known
