"""What code asks of files, and what each operation promises, wherever the files are.

Who works on files takes a `Files` as an argument: `LocalFiles` in a command, `MemoryFiles` or
`WatchedFiles` in a test. What needs more, which only a disk of this machine has, takes a `Disk`.
Four promises carry everything that is done in place:

1. A rename takes its target's place in one step: a reader finds the old file or the new one.
2. Bytes that were synced outlive a power cut. Bytes that were not may be lost, all or in part.
3. Names that were synced, with their directory, do so too. A name that was given, moved or removed
   since may be found as it was before, each by itself and in any order.
4. What is written or cut in place changes one name. A file that has more, by hard links, is copied
   before, the copy synced, and put in the place of the name that it was reached by. The others keep
   the old file, as does who else has it open: they may be a backup (`cp -al`), a copy (`run
   --output --link`), or what an undo brings back.

Nothing else is ordered: what has to be on disk before something else is synced before it.

Paths are absolute, or relative to the current directory. What goes wrong is an OSError that has the
errno of POSIX and the path in it, or a CorruptFileError where what is to be read is no file. After
an error the names are as they were, and no file that had a name has other bytes.
"""

import contextlib
import errno
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import FileIO
from typing import BinaryIO, NamedTuple, Protocol, Self


class Entry(NamedTuple):
    """What a directory listing says about a name."""

    name: str
    is_dir: bool
    size_bytes: int  # 0 for a directory
    mtime_ns: int  # 0 for a directory
    inode: int
    special: str = ""  # what else it is: a link, a pipe, a device
    ctime_ns: int = 0  # 0 for a directory; unlike mtime_ns nobody can set it
    device: int = 0  # 0 for a directory; each host has a number of its own for it


class OpenFile(Protocol):
    """A file that is open for reading: the same one, whatever becomes of its name."""

    def read(self, position: int, length: int) -> bytes:
        """Give length bytes from position; fewer only where the file ends before."""
        ...

    @property
    def entry(self) -> Entry:
        """What a listing says of it as it was opened, but for its name, which is empty."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Close it."""
        ...


class HeldFile(Protocol):
    """A file that stays open for as long as this is there."""

    @property
    def descriptor(self) -> int:
        """By which kernels read it themselves; -1: they may not."""
        ...


class _NotHeld(NamedTuple):
    descriptor: int = -1


NOT_HELD: HeldFile = _NotHeld()  # of a file that only its own operations may reach


class ChangingFile(Protocol):
    """A file that is open for reading and writing: the same one, whatever becomes of its name.

    What is written or cut is seen by every reader at once, and on disk after `sync`. Who reads a
    file with several names sees it as it was opened until then. EMLINK is raised for a change of
    one whose name is gone, or another file's: nobody could say where its own bytes should go.
    """

    def read(self, position: int, length: int) -> bytes:
        """Give length bytes from position; fewer only where the file ends before."""
        ...

    def write(self, position: int, data: "bytes | bytearray | memoryview") -> None:
        """Put all of data at position, over what is there; zeros fill a gap before it.

        After an error the file may hold a part of data, from its beginning on.
        """
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file off, or make it longer by zeros."""
        ...

    def held(self) -> HeldFile:
        """Keep it open for a kernel that reads it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it is open now. A pool closes files, and opens them with their next use."""
        ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Return once the bytes of the file are on disk. Says nothing of its name."""
        ...

    def renamed(self, path: str) -> None:
        """Note that the file's name is `path` now.

        The caller that renames an open file, or the directory that it is in, says so; a pool notes
        it by itself.
        """
        ...

    def close(self) -> None: ...


class Files(Protocol):
    """Operations on files and directories, and what each promises."""

    def list_directory(self, path: str) -> list[Entry]:
        """List a directory, in no order. No link is followed; what vanishes meanwhile is left out.

        Promises no snapshot: a name that comes or goes during the call may be there or not.
        """
        ...

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        """Give the names in a directory, in no order: first those of directories, then the others.

        Looks at nothing but the directory itself; a link is no directory.
        """
        ...

    def look_up(self, path: str) -> Entry | None:
        """Give what a listing of its directory would say about a name; None if there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether there is such a name; OSError where that cannot be found out.

        A no is certain: what is taken for gone is left where it has to go, or made again.
        """
        ...

    def is_directory(self, path: str) -> bool:
        """Say whether a path leads to a directory, be it by a link; OSError if that is unclear."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """Give the whole file."""
        ...

    def read_range(self, path: str, position: int, length: int) -> bytes:
        """Give length bytes from position; fewer only where the file ends before."""
        ...

    def open(self, path: str) -> OpenFile:
        """Open a file for several reads; who opens it closes it, by `with`."""
        ...

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        """Open a file to read and write it; who opens it closes it.

        create: an empty one where there is none, whose name is on disk only after sync_directory.
        """
        ...

    def replace_file(self, path: str, data: bytes) -> None:
        """Make path hold exactly data. Bytes and name are on disk when it returns.

        After a power cut on the way it holds the old bytes or the new, never a mix, and
        `<path>.tmp` may be left. Who looks meanwhile finds the old file or the new one. The new one
        has owner, mode and extended attributes of the old one, where files have any.
        """
        ...

    def truncate_file(self, path: str, size_bytes: int) -> None:
        """Cut a file off; that is on disk when it returns.

        A power cut leaves the old length or the new one.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename in one step, over target if it exists. On disk only after sync_directory.

        Both are on one file system: across two it fails. Where both are names of one file already,
        they stay.
        """
        ...

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must be new. On disk only after sync_directory.

        It is the same file until one of the names is written or cut.

        OSError where there are no hard links, or the names are on two file systems.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove the name of a file; FileNotFoundError if it is not there.

        On disk only after sync_directory.
        """
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory that this user alone may enter. Its name is on disk when it returns."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory; OSError for one that is not.

        On disk only after sync_directory of the one it was in.
        """
        ...

    def set_modified(self, path: str, time_ms: int) -> None:
        """Say when a file was written last, to the millisecond."""
        ...

    def sync_file(self, path: str) -> None:
        """Return once the bytes of the file are on disk. Says nothing of its name."""
        ...

    def sync_directory(self, path: str) -> None:
        """Return once the names in the directory are on disk, with every rename and removal so far.

        Says nothing of the files' bytes, or of the directory's own name.
        """
        ...


class Opened(NamedTuple):
    """A file that was opened to be read, for kernels and system calls."""

    descriptor: int  # for the caller to close
    entry: Entry  # as it was opened, but for its name


class FileAttributes(NamedTuple):
    """Owner, mode, time and extended attributes of a file, for the one that takes its place."""

    uid: int
    gid: int
    mode: int  # permissions alone
    mtime_ns: int
    extended: tuple[tuple[str, bytes], ...]  # those that go along


class Cloned(NamedTuple):
    """How a file was copied."""

    source: Entry  # as it was opened, but for its name
    has_owner: bool  # the copy is its owner's; else of who made it


_DISK_TYPES = "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2"
_OTHER_TYPES = "reiserfs", "tmpfs", "ramfs", "rootfs", "overlay"
LOCAL_TYPES = frozenset((*_DISK_TYPES, *_OTHER_TYPES))  # this kernel alone knows what is done there


class Mount(NamedTuple):
    """A file system, and where it is mounted."""

    mount_point: str
    type: str  # like ext4, nfs4, fuse.sshfs
    options: frozenset[str]  # of the mount and of the file system


class Disk(Files, Protocol):
    """A disk of this machine: `Files`, and what else a local file system can do.

    Copies, locks, work directories and the tasks of a round need it: they work by descriptors, keep
    owner and mode, and ask what this user may do. `LOCAL` is the one of the product.

    What is opened by a descriptor is read, written and closed by the caller's own system calls: no
    object stands between a kernel and its file. Errors have the path in them, as those of `Files`.
    """

    def resolve(self, path: str) -> str:
        """Return the absolute path without links, also of a name that does not exist."""
        ...

    def is_same(self, path: str, other: str) -> bool:
        """Say whether two paths lead to one file or directory; OSError where one leads nowhere."""
        ...

    def status(self, path: str, follow: bool = True) -> os.stat_result:
        """Return what the system knows of a name; follow: of what a link leads to."""
        ...

    def file_system_status(self, path: str) -> os.statvfs_result:
        """Return the free space and the flags of the file system that a path is on."""
        ...

    def mount_of(self, path: str) -> Mount | None:
        """Return the mount that a directory is on; None where the system does not say."""
        ...

    def is_permitted(self, path: str, rights: int) -> bool:
        """Say whether this user has all of these rights: `os.R_OK`, `os.W_OK`, `os.X_OK`, added.

        No where there is no such name, and where that cannot be found out.
        """
        ...

    def may_give(self, uid: int, gid: int) -> bool:
        """Say whether this user can make files that belong to a user and a group."""
        ...

    def require_replaceable(self, path: str) -> None:
        """Raise the OSError with which `replace_file` would fail for this user. Changes nothing.

        A limit that shows only when it is tried, such as a full disk, is not seen.
        """
        ...

    def make_directories(self, path: str) -> None:
        """Make a directory, and those above it that are missing, for this user alone.

        One that exists stays as it is. Names are on disk only after sync_directory.
        """
        ...

    def temporary_directory(self) -> str:
        """Return the system's directory for temporary files."""
        ...

    def make_temporary_directory(self, prefix: str, parent: str | None = None) -> str:
        """Make a directory with a new name, for this user alone; return its path.

        parent: None: the system's directory for temporary files.
        """
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it. On disk only after sync_directory."""
        ...

    def discard_directory(self, path: str) -> None:
        """Remove a directory with all that is in it; where that fails, some of it stays."""
        ...

    def open_raw(self, path: str, mode: str, is_private: bool = True) -> FileIO:
        """Open a file to write it, without a buffer.

        In a directory that is held, it is opened in that very directory, once its owner was asked.

        Args:
            path: Goes into errors as it is.
            mode: As of `open`: `xb` and `x+b` make a new file, `wb` empties an old one, `r+b`
                changes it.
            is_private: Only this user can read what is made.
        """
        ...

    def open_named(self, path: str, mode: str = "rb") -> BinaryIO:
        """Open a file that a user has named, with a buffer.

        Links and pipes are followed, as a shell does: a configuration may be either. What is
        written is on disk only after a sync.

        Args:
            path: Goes into errors as it is.
            mode: `rb` reads, `wb` makes a file or empties one, `ab` adds to its end.
        """
        ...

    def open_descriptor(self, path: str, flags: int, mode: int = 0o600) -> int:
        """Open a file or a directory as `os.open` does; the descriptor is the caller's to close.

        For locks, pipes and marks, whose flags matter. Directories that are held are not asked.
        """
        ...

    def open_to_read(self, path: str) -> Opened:
        """Open a file of a log directory to read it by its descriptor.

        CorruptFileError where it is no file: no link is followed, and no pipe is waited for.
        """
        ...

    def sync_descriptor(self, descriptor: int) -> None:
        """Return once the bytes of an open file are on disk, and raise what its writing met.

        By the descriptor that has written: another may not see an error from before it was opened.
        """
        ...

    def attributes_of(self, file: str | int) -> FileAttributes:
        """Return the attributes of a path or of an open file. A link is followed."""
        ...

    def give_attributes(self, descriptor: int, model: FileAttributes) -> None:
        """Give an open file that this process made the attributes of another, but not its time.

        PermissionError where only a privileged user may: a file of another owner is no replacement.
        """
        ...

    def set_times(self, file: str | int, time_ns: int | None) -> None:
        """Set when a file, or an open file, was last written and read; None: now."""
        ...

    def allocated_bytes(self, path: str) -> int:
        """Return how much of a file is no hole."""
        ...

    def clone_file(self, source: str, target: str, advance: Callable[[int], object]) -> Cloned:
        """Make target, which must be new, a copy of source, with its attributes and its time.

        The bytes are shared where the file system can, and holes stay holes. On disk only after a
        sync. What is left of target after an error is the caller's to remove.

        Args:
            source: A file.
            target: Its copy.
            advance: Is called with the number of bytes copied since its last call.
        """
        ...

    def clone_directory(self, source: str, target: str) -> bool:
        """Make a directory with the owner and mode of another; say whether it got the owner."""
        ...

    def can_share(self, source: str, directory: str) -> bool:
        """Say whether a copy of a file in a directory would share its bytes. Leaves nothing."""
        ...

    def sync_file_system(self, descriptor: int, path: str) -> None:
        """Return once everything on the file system of an open directory is on disk.

        Args:
            descriptor: Opened before anything was written: no earlier error is reported to it.
            path: For errors.
        """
        ...

    def hold_log_dir(
        self, path: str, require_owner: Callable[[], object]
    ) -> AbstractContextManager[None]:
        """Hold a log directory and those in it: later work reaches these very ones or fails.

        require_owner: is called before each change, and raises where none may be made any more.
        """
        ...

    def hold_directory(self, path: str, inode: int | None) -> AbstractContextManager[None]:
        """Hold one directory by its inode, unless it is held already; None: hold nothing."""
        ...

    def kept_open(self, path: str) -> AbstractContextManager[None]:
        """Open a held directory once for all that this thread does in it meanwhile."""
        ...

    def require_unchanged(self, path: str) -> None:
        """Raise DirectoryExchangedError or OSError where a directory is not the one held."""
        ...

    def inode_of(self, path: str) -> int | None:
        """Return the inode by which a directory is held; None for one that is not held."""
        ...


def entry_of(files: Files, path: str) -> Entry:
    """What a look at a name tells; FileNotFoundError if there is no such name."""
    found = files.look_up(path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return found


def size_of(files: Files, path: str) -> int:
    """The size of a file; FileNotFoundError if it is not there."""
    return entry_of(files, path).size_bytes


def rename_if_exists(files: Files, source: str, target: str) -> None:
    """Rename a file; one that does not exist is no error."""
    try:
        files.rename(source, target)
    except FileNotFoundError:
        if files.exists(source):
            raise


def remove_if_exists(files: Files, path: str) -> None:
    """Remove a file; one that does not exist is no error."""
    with contextlib.suppress(FileNotFoundError):
        files.remove(path)
