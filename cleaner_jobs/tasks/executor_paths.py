"""Checks that an executor can do its part, and maps the driver's paths to its own.

Every process of an executor checks it once, before its first task: an executor may come when the
work has begun. Directories whose names differ from the driver's are listed in pairs. Which of these
names hold on this host is found by what must be there: the run's token, and the directories of logs
by their inodes.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from storage.errors import LogCompactionError
from storage.files.files import Disk
from storage.files.local import LOCAL

PYTHON, WORK_DIR, LOG_DIR = "python", "work-dir", "log-dir"  # what can be lacking: values of Lack
UNFIT = "cannot do its part"  # what of the error Spark hands on
PACKAGES = ("numba", "llvmlite", "numpy", "xxhash", "crc32c", "cramjam", "zstandard", "fsspec")
_SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SENT = ("storage", "cleaner_jobs", "compactor")  # what the driver and its tasks must have alike

Names = tuple[tuple[str, str], ...]  # a directory as the driver calls it, and as it is called here


class UnfitExecutorError(LogCompactionError):
    """This process cannot do its part. Nothing was changed."""

    reason_code = "unfit-executor"


class Asked(NamedTuple):
    """What the driver asks an executor for: plain values, which travel as they are."""

    token_path: str
    token: str
    directories: list[tuple[str, int]]  # of logs, and their inodes: these stay all through the run
    files: list[tuple[str, int, int, int]]  # path, size, mtime and inode, before work begins
    to_write: bool  # whether files are put into the directories
    packages: list[tuple[str, str]]  # and their versions
    names: list[tuple[str, str]]  # a directory of the driver's, and one name of it on executors


class PathMapping(NamedTuple):
    """The names of directories where this process is: none where all are as the driver has them."""

    names: Names = ()

    def to_executor(self, value: Any) -> Any:
        """Return a value of plain values, with every path in it as it is named here."""
        return _renamed(value, self.names) if self.names else value

    def to_driver(self, value: Any) -> Any:
        """Return a value of plain values, with every path in it as the driver names it."""
        return _renamed(value, tuple((b, a) for a, b in self.names)) if self.names else value


SAME_PATHS = PathMapping()


def package_versions() -> list[tuple[str, str]]:
    """Return the versions of what the result depends on, and a digest of our own source."""
    return [*((name, _version(name)) for name in PACKAGES), ("source", _digest())]


def find_problems(asked: Asked, disk: Disk = LOCAL) -> list[tuple[str, str]]:
    """Return what is lacking, and why. Files are checked, too: nothing may have changed yet."""
    paths, problems = _paths(asked, disk)
    if not problems:
        problems += [problem for file in asked.files for problem in _of_file(disk, file, paths)]
    return problems


def require_fit_executor(asked: Asked | None, disk: Disk = LOCAL) -> PathMapping:
    """Return what tasks here stand on, looked for once in a process. Raise UnfitExecutorError."""
    if asked is None:
        return SAME_PATHS
    if asked.token not in _KNOWN:
        paths, problems = _paths(asked, disk)
        if problems:
            _, problem = problems[0]
            raise UnfitExecutorError(f"executor on {socket.gethostname()} {UNFIT}: {problem}")
        _KNOWN[asked.token] = paths
    return _KNOWN[asked.token]


_KNOWN: dict[str, PathMapping] = {}  # by token: Spark may use a process for several runs


def _paths(asked: Asked, disk: Disk) -> tuple[PathMapping, list[tuple[str, str]]]:
    problems = list(_other_packages(asked.packages))
    names: list[tuple[str, str]] = []
    for theirs in _prefixes(asked):
        ours = [here for there, here in asked.names if there == theirs] or [theirs]
        tried = {here: list(_wrong_under(disk, asked, theirs, here)) for here in ours}
        fitting = next((here for here, wrong in tried.items() if not wrong), None)
        if fitting is None:
            problems += next(iter(tried.values()))
        elif fitting != theirs:
            names.append((theirs, fitting))
    return PathMapping(tuple(names)), problems


def _prefixes(asked: Asked) -> list[str]:
    """Return the directories with names of their own here, longest first, then all the rest."""
    return [*sorted({there for there, _ in asked.names}, key=len, reverse=True), ""]


def _wrong_under(disk: Disk, asked: Asked, theirs: str, here: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong below one of the driver's directories, if it has this name here."""
    names = ((theirs, here),)
    others = _prefixes(asked)
    if _prefix_of(asked.token_path, others) == theirs:
        yield from _of_token(disk, _renamed(asked.token_path, names), asked.token)
    for path, inode in asked.directories:
        if _prefix_of(path, others) == theirs:
            yield from _of_directory(disk, _renamed(path, names), inode, asked.to_write)


def _of_token(disk: Disk, path: str, token: str) -> Iterator[tuple[str, str]]:
    directory = os.path.dirname(path)
    try:
        if disk.read_bytes(path) != token.encode():
            yield WORK_DIR, f"{directory}: is another directory there"
        elif not disk.is_permitted(directory, os.W_OK | os.X_OK):
            yield WORK_DIR, f"{directory}: no permission to write there"
    except OSError as error:
        yield WORK_DIR, f"{path}: {error.strerror}"


def _of_directory(disk: Disk, path: str, inode: int, to_write: bool) -> Iterator[tuple[str, str]]:
    try:
        if disk.status(path).st_ino != inode:
            yield LOG_DIR, f"{path}: is another directory there"
        elif to_write and not disk.is_permitted(path, os.W_OK | os.X_OK):
            yield LOG_DIR, f"{path}: no permission to write there"
    except OSError as error:
        yield LOG_DIR, f"{path}: {error.strerror}"


def _of_file(
    disk: Disk, file: tuple[str, int, int, int], paths: PathMapping
) -> Iterator[tuple[str, str]]:
    path, *facts = file
    path = paths.to_executor(path)
    try:
        found = disk.status(path)
        if [found.st_size, found.st_mtime_ns, found.st_ino] != facts:
            yield LOG_DIR, f"{path}: is another file there"
    except OSError as error:
        yield LOG_DIR, f"{path}: {error.strerror}"


def _other_packages(wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    here = dict(package_versions())
    for name, version in wanted:
        if here.get(name) != version and name == "source":
            yield PYTHON, f"{_SOURCES}: the packages of this project are not those of the driver"
        elif here.get(name) != version:
            yield PYTHON, f"{name} {here.get(name)}, where the driver has {version}"


def _renamed(value: Any, names: Names) -> Any:
    """Every string that is a directory of names, or stands below one, begins with its new name."""
    if isinstance(value, str):
        for old, new in names:
            if _is_below(value, old):
                return new + value[len(old) :]
        return value
    if isinstance(value, dict):
        return {key: _renamed(of_key, names) for key, of_key in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(part, names) for part in value]
    return value


def _prefix_of(path: str, prefixes: Sequence[str]) -> str:
    return next(prefix for prefix in prefixes if not prefix or _is_below(path, prefix))


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "missing"


@cache
def _digest() -> str:
    """Return a digest of the sources of the packages that tasks come from."""
    digest = sha256()
    for package in _SENT:
        for name, content in sorted(_modules_in(resources.files(package), package)):
            digest.update(f"{name}\n".encode() + content)
    return digest.hexdigest()


def _modules_in(package: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each module of a package, and of those in it."""
    for entry in package.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _modules_in(entry, path)
        elif path.endswith(".py"):
            yield path, entry.read_bytes()


class Lack(StrEnum):
    """In the order in which problems are reported."""

    PYTHON = "python"  # or the package
    WORK_DIR = "work-dir"
    LOG_DIR = "log-dir"


class ExecutorProblem(NamedTuple):
    lack: Lack
    problem: str
    hosts: tuple[str, ...]
