"""How far the logs of a directory were cleaned, while their ends are cut off."""

import os
import threading

from storage.errors import CorruptFileError
from storage.files.files import Files
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition


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
