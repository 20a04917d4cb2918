"""Files that are read below an overlay, of which a bounded number is open.

A log of thousands of segments has more files than a process may have open. The one that was not
read for longest is closed, and opened again when it is next read: it must be the same file then.
"""

import errno
from collections import OrderedDict

from storage.files.files import Files, OpenFile
from storage.files.open_limit import most_by_default


class FilesBelow:
    """Files by path, each the one that it was when it was first read. One thread at a time."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: OrderedDict[str, OpenFile] = OrderedDict()  # the one read last comes last
        self._first: dict[str, tuple[int, int]] = {}  # device and inode, as it was first opened

    @property
    def open_count(self) -> int:
        """How many files it has open."""
        return len(self._open)

    def read(self, path: str, position: int, length: int) -> bytes:
        """Read of a file. OSError where it was closed, and another has its name by now."""
        opened = self._open.get(path) or self._opened(path)
        self._open.move_to_end(path)
        return opened.read(position, length)

    def close_file(self, path: str) -> None:
        """Close a file, which may be another by this name when it is next read."""
        self._first.pop(path, None)
        opened = self._open.pop(path, None)
        if opened is not None:
            opened.__exit__()

    def close(self) -> None:
        """Close every file."""
        for path in list(self._open):
            self.close_file(path)
        self._first.clear()

    def _opened(self, path: str) -> OpenFile:
        most = max(1, most_by_default() // 2)  # a pool above has as many
        while len(self._open) >= most:
            _, oldest = self._open.popitem(last=False)
            oldest.__exit__()
        opened = self._files.open(path)
        identity = (opened.entry.device, opened.entry.inode)
        if self._first.setdefault(path, identity) != identity:
            opened.__exit__()
            problem = "another file has this name since it was first read; read it again"
            raise OSError(errno.ESTALE, problem, path)
        self._open[path] = opened
        return opened
