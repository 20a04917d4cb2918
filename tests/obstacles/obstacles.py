"""What may be in the way of a run: one function each, by name; `tests.obstacles.verdicts` draws."""

import errno
import fcntl
import os
import resource
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from inspect import isfunction
from pathlib import Path
from typing import Any
from unittest import mock

from compactor.host import machine
from compactor.log_dirs.directory_state import NO_BROKER, UNFINISHED
from storage.files.files import Mount
from storage.files.local import LocalFiles
from storage.formats import checkpoint
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.formats.meta_properties import META_PROPERTIES
from storage.log.cluster_metadata import METADATA_DIR
from tests.obstacles.place import Place, of_root

Obstacle = Callable[[Place], None]

OWNED = 0o600, 0o644
GARBAGE = (b"", b"\0" * 43, b"x\n", b"1\n0\n", b"0\n5\n", b"0\n1\nt 0\n", b"0\n1\n\xff 0 1\n")


def nothing(_: Place) -> None:
    """A run that nothing stops is foreseen, too."""


def foreign_file(place: Place) -> None:
    """A file of a log is root's."""
    of_root(place.file(), place.chance.choice(OWNED))


def unreadable_file(place: Place) -> None:
    place.file().chmod(0)


def foreign_checkpoint(place: Place) -> None:
    path = place.log_dir / place.chance.choice(checkpoint.ALL)
    if not path.exists():
        path.write_bytes(b"0\n0\n")
    of_root(path, place.chance.choice(OWNED))


def foreign_lock(place: Place) -> None:
    path = place.log_dir / ".lock"
    path.touch()
    of_root(path, place.chance.choice(OWNED))


def lock_is_no_file(place: Place) -> None:
    path = place.log_dir / ".lock"
    if path.exists():
        return
    kind = place.chance.randrange(3)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to("elsewhere")
    else:
        (place.log_dir / "elsewhere").touch()
        path.symlink_to("elsewhere")


def closed_partition(place: Place) -> None:
    place.partition.chmod(place.chance.choice((0, 0o500, 0o300)))


def foreign_partition(place: Place) -> None:
    of_root(place.partition, place.chance.choice((0o700, 0o755)))


def closed_log_dir(place: Place) -> None:
    place.log_dir.chmod(place.chance.choice((0, 0o500, 0o300, 0o600)))


def closed_parent(place: Place) -> None:
    of_root(place.root, 0o700)


def sticky_log_dir(place: Place) -> None:
    path = place.log_dir
    of_root(path, 0o1777)
    if place.chance.random() < 0.5:
        name = path / f"{checkpoint.CLEANER_OFFSET}.tmp"
        name.touch()
        of_root(name, 0o644)


def missing_log_dir(place: Place) -> None:
    place.words.append(str(place.root / "nowhere"))


def given_twice(place: Place) -> None:
    place.words.append(f"{place.words[0]}/")


def partition_given(place: Place) -> None:
    place.words[-1] = str(place.partition)


def file_given(place: Place) -> None:
    place.words.append(str(place.file()))


def one_not_given(place: Place) -> None:
    del place.words[place.chance.randrange(len(place.words)) :]
    if not place.words:
        place.words.append(str(place.log_dirs[-1]))


def run_at_work(place: Place) -> None:
    place.hold(place.log_dir / ".lock")


def broker_at_work(place: Place) -> None:
    for path in place.log_dirs:
        (path / CLEAN_SHUTDOWN).unlink(missing_ok=True)
    for path in place.log_dirs:
        place.hold(path / ".lock")


def unclean(place: Place) -> None:
    (place.log_dir / CLEAN_SHUTDOWN).unlink(missing_ok=True)


def no_high_watermarks(place: Place) -> None:
    (place.log_dir / checkpoint.REPLICATION).unlink(missing_ok=True)


def bad_checkpoint(place: Place) -> None:
    path = place.log_dir / place.chance.choice(checkpoint.ALL)
    path.write_bytes(place.chance.choice(GARBAGE))


def checkpoint_is_directory(place: Place) -> None:
    path = place.log_dir / place.chance.choice(checkpoint.ALL)
    path.unlink(missing_ok=True)
    path.mkdir()


def temporary_is_in_the_way(place: Place) -> None:
    path = place.log_dir / f"{place.chance.choice(checkpoint.ALL)}.tmp"
    if place.chance.random() < 0.5:
        path.mkdir()
    else:
        path.touch()
        of_root(path, 0o600)


def no_locks(place: Place) -> None:
    number = place.chance.choice((errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EIO))

    def without(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    place.patches.append(
        lambda stack: stack.enter_context(mock.patch.object(fcntl, "lockf", without))
    )


def network_mount(place: Place) -> None:
    mount = Mount("/", "nfs4", frozenset())
    patch = mock.patch.object(LocalFiles, "mount_of", staticmethod(lambda _: mount))
    place.patches.append(lambda stack: stack.enter_context(patch))


def few_descriptors(place: Place) -> None:
    patch = mock.patch.object(machine, "open_file_limit", lambda: 256)
    place.patches.append(lambda stack: stack.enter_context(patch))


def limited_files(place: Place) -> None:
    def limit(_: ExitStack) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, min(512, hard)))

    place.patches.append(limit)


def no_room(place: Place) -> None:
    plain = os.statvfs

    def full(path: Any) -> os.statvfs_result:
        found = plain(path)
        return os.statvfs_result((*found[:4], 0, *found[5:], found.f_fsid))

    place.patches.append(lambda stack: stack.enter_context(mock.patch.object(os, "statvfs", full)))


def temporary_in_log_dir(place: Place) -> None:
    name = place.chance.choice(("TMPDIR", "XDG_CACHE_HOME", "SPARK_LOCAL_DIRS"))
    inside = {name: str(place.log_dir / "inside")}
    place.patches.append(lambda stack: stack.enter_context(mock.patch.dict(os.environ, inside)))


def unfinished_copy(place: Place) -> None:
    (place.log_dir / UNFINISHED).mkdir(exist_ok=True)


def copy_to_keep(place: Place) -> None:
    (place.log_dir / NO_BROKER).mkdir(exist_ok=True)


def _metadata(place: Place) -> Path | None:
    found = sorted((place.log_dirs[0] / METADATA_DIR).glob("*.log"))
    return found[0] if found else None


def damaged_metadata(place: Place) -> None:
    path = _metadata(place)
    if path is not None:
        data = bytearray(path.read_bytes())
        if data:
            data[place.chance.randrange(len(data))] ^= 1 << place.chance.randrange(8)
        path.write_bytes(data)


def cut_metadata(place: Place) -> None:
    path = _metadata(place)
    if path is not None:
        os.truncate(path, place.chance.randrange(path.stat().st_size + 1))


def foreign_metadata(place: Place) -> None:
    path = _metadata(place)
    if path is not None:
        of_root(place.chance.choice((path, path.parent)), 0o600)


def bad_identity(place: Place) -> None:
    path = place.log_dir / META_PROPERTIES
    kind = place.chance.randrange(5)
    if kind == 0:
        path.unlink(missing_ok=True)
    elif kind == 1:
        path.write_bytes(b"")
    elif kind == 2:
        path.write_bytes(b"version=1\nnode.id=two\ncluster.id=cluster\n")
    elif kind == 3:
        path.write_bytes(b"version=1\nnode.id=2\ncluster.id=cluster\n")
    elif path.exists():
        of_root(path, 0o600)


def bad_topic_id(place: Place) -> None:
    path = place.partition / "partition.metadata"
    kind = place.chance.randrange(3)
    if kind == 0:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(b"" if kind == 1 else b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAFQ\n")


def no_logs(place: Place) -> None:
    for path in place.partition.glob("*.log"):
        path.unlink()


def no_partition(place: Place) -> None:
    partition = place.partition
    partition.chmod(0o700)
    shutil.rmtree(partition)


def left_over(place: Place) -> None:
    """Of a swap, a cleaning, a deletion, a run."""
    path = place.file("*.log")
    suffix = place.chance.choice((".swap", ".cleaned", ".deleted", ".compactor-ab12-1-0"))
    shutil.copyfile(path, path.with_name(path.name + suffix))


def swap_cut_short(place: Place) -> None:
    """Some files of a segment are about to take their names: all of it, or without its log."""
    log = place.file("*.log")
    suffixes = [".index", ".timeindex", *([".log"] if place.chance.random() < 0.7 else [])]
    for suffix in suffixes:
        path = log.with_suffix(suffix)
        if path.exists():
            path.rename(path.with_name(path.name + ".swap"))


def foreign_name(place: Place) -> None:
    name = place.chance.choice(("9.log", "000000000000000000009.log", "x.index", "notes.txt"))
    (place.partition / name).touch()


def link_in_log(place: Place) -> None:
    path = place.file()
    path.rename(place.root / path.name)
    path.symlink_to(place.root / path.name)


def special_directory(place: Place) -> None:
    end = place.chance.choice(("-delete", "-future", "-stray"))
    name = f"{place.partition.name}.{'a' * 32}{end}"
    (place.log_dir / name).mkdir(exist_ok=True)


def strange_directory(place: Place) -> None:
    (place.log_dir / "lost+found").mkdir(exist_ok=True)


def in_two_directories(place: Place) -> None:
    partition = place.partition
    for log_dir in place.log_dirs:
        if not (log_dir / partition.name).exists():
            partition.chmod(0o700)
            shutil.copytree(partition, log_dir / partition.name, symlinks=True)


def torn_end(place: Place) -> None:
    with place.file("*.log").open("ab") as out:
        out.write(place.chance.randbytes(place.chance.randint(1, 90)))


def cut_log(place: Place) -> None:
    path = sorted(place.partition.glob("*.log"))[-1]
    os.truncate(path, place.chance.randrange(path.stat().st_size + 1))


def no_beginning(place: Place) -> None:
    first, *others = sorted(place.partition.glob("*.log"))
    for path in place.partition.glob(f"{first.stem}.*") if others else ():
        path.unlink()


def bad_index(place: Place) -> None:
    path = place.file("*.*index")
    path.write_bytes(place.chance.randbytes(place.chance.choice((7, 8, 12, 24))))


def no_index(place: Place) -> None:
    place.file("*.*index").unlink()


def bad_epochs(place: Place) -> None:
    (place.partition / LEADER_EPOCH_CHECKPOINT).write_bytes(place.chance.choice(GARBAGE))


def bad_memory(place: Place) -> None:
    path = place.log_dir / "compactor-set-aside.json"
    path.write_bytes(place.chance.choice((b"", b"{}", b'{"version": 2, "logs": []}\n')))
    if place.chance.random() < 0.5:
        of_root(path, 0o600)


def from_the_future(place: Place) -> None:
    path = place.file("*.log")
    ahead = path.stat().st_mtime + 10**6
    os.utime(path, (ahead, ahead))


def low_watermark(place: Place) -> None:
    path = place.log_dir / checkpoint.REPLICATION
    if path.is_file():
        checkpoint.write(str(path), {})


# What is in a file is known when it is read, and not by a plan.
FOUND_BY_READING = (bad_index, torn_end)

OBSTACLES: tuple[Obstacle, ...] = tuple(
    each
    for name, each in list(globals().items())
    if isfunction(each) and each.__module__ == __name__ and not name.startswith("_")
)

LAST: tuple[Obstacle, ...] = (
    lock_is_no_file,
    temporary_is_in_the_way,
    swap_cut_short,
    no_logs,
    no_partition,
)
"""These leave nothing for another obstacle to lock or to spoil, so they come after it."""


def in_order(drawn: list[Obstacle]) -> list[Obstacle]:
    """The same obstacles, so that each finds what it needs."""
    return sorted(drawn, key=lambda each: LAST.index(each) if each in LAST else -1)
