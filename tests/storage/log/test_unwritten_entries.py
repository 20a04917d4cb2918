"""Index entries that a kernel has put in memory: when they come to the file, and what fails then.

In Kafka they are there at once (L-4): whatever is done with a file finds them written.
"""

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compactor import Log, LogManager, LogOptions, ManagerOptions
from storage.files.file_pool import FilePool
from storage.files.files import ChangingFile
from storage.files.local import LOCAL, LocalFiles
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.index_files import OFFSET_ENTRY, TIME_ENTRY, OffsetIndexFile
from storage.log.log_config import LogConfig
from storage.log.manager.manager_options import BY_HAND
from storage.log.offsets import LargestTimestamp
from storage.log.scheduler import ManualScheduler
from storage.log.segment import LogPlace, LogSegment
from tests.engine.replay.replayed import kernels_used
from tests.support.file_states import open_below
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation, WatchedFiles

NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(index_interval_bytes=100)
BATCH = encode_batch([Record(0, NOW_MS, b"key", b"v" * 50)])


def put_by_a_kernel(index: OffsetIndexFile, offsets: range) -> None:
    """Entries in memory alone, behind those of the offsets from 0 on."""
    packed = b"".join(OFFSET_ENTRY.pack(offset, 10 * offset) for offset in offsets)
    index.opened().make_room(len(offsets))
    index.file.data[8 * offsets.start : 8 * offsets.stop] = packed
    index.file.grew_to(offsets.stop)


def count_of(data: bytes) -> int:
    """How many of the entries 0, 1, 2… there are, and nothing else but zeros."""
    found = list(OFFSET_ENTRY.iter_unpack(data))
    count = max((n + 1 for n, entry in enumerate(found) if any(entry)), default=0)
    assert found[:count] == [(n, 10 * n) for n in range(count)]
    return count


@pytest.mark.parametrize(
    ("does", "left"),
    [
        (lambda index: index.file.flush(), 5),
        (lambda index: index.file.trim(), 5),
        (lambda index: index.file.resize(160), 5),
        (lambda index: index.file.close(), 5),
        (lambda index: index.file.close_handle(), 5),
        (lambda index: index.file.rename("/renamed"), 5),
        (lambda index: index.append(5, 50), 6),
        (lambda index: index.truncate_to(2), 5),  # in the file nothing is cut off, as in Kafka
    ],
)
def test_they_are_in_the_file_before_anything_else_is_done_with_it(
    does: Callable[[OffsetIndexFile], object], left: int
) -> None:
    files = MemoryFiles()
    index = OffsetIndexFile(files, "/index", 0, 80)
    put_by_a_kernel(index, range(5))
    assert count_of(files.read_bytes("/index")) == 0
    does(index)
    assert count_of(files.read_bytes(index.file.path)) == left


def test_what_is_cut_off_and_put_again_comes_to_the_file_once() -> None:
    files = MemoryFiles()
    index = OffsetIndexFile(files, "/index", 0, 800)
    put_by_a_kernel(index, range(50))
    index.truncate_to(40)
    put_by_a_kernel(index, range(40, 41))
    index.file.flush()
    assert count_of(files.read_bytes("/index")) == 50
    index.file.close()
    assert count_of(files.read_bytes("/index")) == 41


def test_they_are_written_many_at_once() -> None:
    """Of both indexes, of which one has fewer."""
    files = MemoryFiles()
    files.make_directory("/t-0")
    place = LogPlace(FilePool(files, 10), "/t-0", lambda: NOW_MS)
    segment = LogSegment(place, 0, LogConfig(segment_index_bytes=24_000), is_new=True)
    segment.open_indexes()
    times, most = segment.time_index, 0
    for number in range(1500):
        put_by_a_kernel(segment.offset_index, range(number, number + 1))
        segment.offset_index.file.entries = number
        count = number // 3 + 1
        if number % 3 == 0:
            times.file.make_room(1)
            times.file.data[12 * (count - 1) : 12 * count] = TIME_ENTRY.pack(count, number)
        segment.took(100 * number, 0, LargestTimestamp(count, number), number + 1, count)
        written = count_of(files.read_bytes(segment.offset_index.file.path))
        most = max(most, number + 1 - written)
        of_times = TIME_ENTRY.iter_unpack(files.read_bytes(times.file.path))
        assert sum(time > 0 for time, _ in of_times) == (written + 2) // 3
    assert most == 511
    assert (segment.offset_index.last_offset, times.last) == (1499, (500, 1497))


class Broken:
    """A disk that takes no write while it is told to."""

    def __init__(self) -> None:
        self.disk, self.is_broken = MemoryFiles(), False
        self.files = WatchedFiles(self.disk, self._fail)

    def _fail(self, operation: Operation) -> None:
        if self.is_broken and operation.name == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), operation.paths[0])


@pytest.mark.parametrize("name", ["/index", "/renamed"])
def test_what_cannot_be_written_is_told_by_the_flush_and_not_lost(name: str) -> None:
    """Nor does it hinder a rename: a log can be deleted where the disk is full."""
    broken = Broken()
    index = OffsetIndexFile(broken.files, "/index", 0, 80)
    put_by_a_kernel(index, range(5))
    broken.is_broken = True
    if name == "/renamed":
        index.file.rename(name)
    for does in (index.file.write_rest, index.file.flush, index.file.trim):
        with pytest.raises(OSError, match="No space"):
            does()
    assert index.last_offset == 4
    broken.is_broken = False
    put_by_a_kernel(index, range(5, 6))
    index.file.flush()
    assert count_of(broken.disk.read_bytes(name)) == 6


def test_nobody_is_promised_what_is_closed_without_a_flush() -> None:
    broken = Broken()
    index = OffsetIndexFile(broken.files, "/index", 0, 80)
    put_by_a_kernel(index, range(5))
    broken.is_broken = True
    index.file.close_handle()
    index.file.close_handle()
    index.file.write_rest()
    assert count_of(broken.disk.read_bytes("/index")) == 0


def test_a_file_that_the_pool_has_closed_is_not_opened_for_that(tmp_path: Path) -> None:
    """Its name may be another's by then."""
    pool, path = FilePool(LOCAL, 1), tmp_path / "index"
    index = OffsetIndexFile(pool, str(path), 0, 80)
    put_by_a_kernel(index, range(5))
    pool.open_to_change(str(tmp_path / "other"), create=True)
    index.file.close_handle()
    assert count_of(path.read_bytes()) == 0
    assert [Path(name).name for name in open_below(tmp_path)] == ["other"]


class SlowSync:
    """A file whose sync waits until it is let go on."""

    def __init__(self, file: ChangingFile) -> None:
        self.in_sync, self.goes_on = threading.Event(), threading.Event()
        self._sync, self.is_open = file.sync, True
        self.read, self.write, self.truncate = file.read, file.write, file.truncate
        self.held, self.wrote, self.size, self.close = file.held, file.wrote, file.size, file.close
        self.renamed = file.renamed

    def sync(self) -> None:
        self.in_sync.set()
        assert self.goes_on.wait(30)
        self._sync()


class SlowFiles(LocalFiles):
    def __init__(self) -> None:
        self.opened: list[SlowSync] = []

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        self.opened.append(SlowSync(super().open_to_change(path, create)))
        return self.opened[-1]


def test_an_append_does_not_wait_for_a_flush_and_its_entries_for_the_next(tmp_path: Path) -> None:
    files, path = SlowFiles(), tmp_path / "index"
    index = OffsetIndexFile(files, str(path), 0, 64)  # bytes, all of which are used at the end
    put_by_a_kernel(index, range(5))
    with ThreadPoolExecutor(2) as threads:
        flushed = threads.submit(index.file.flush)
        (file,) = files.opened
        assert file.in_sync.wait(30)
        try:
            assert count_of(path.read_bytes()) == 5

            def append() -> None:
                put_by_a_kernel(index, range(5, 7))
                index.file.write_rest()
                index.append(7, 70)
                index.truncate_to(7)
                index.append(7, 70)

            threads.submit(append).result(30)
            assert count_of(path.read_bytes()) == 8
            assert not flushed.done()
        finally:
            file.goes_on.set()
        flushed.result(30)
    file.in_sync.clear()
    index.file.close()
    assert file.in_sync.is_set()  # what came beside the flush was still to be synced


def appended(log: Log) -> bytes:
    """Append batches with entries that are in memory alone; what the offset index has then."""
    for _ in range(9):
        log.append_as_leader(BATCH)
    index = log.segments[-1].offset_index
    entries = bytes(index.file.data[: index.file.size_bytes])
    assert len(entries) == 8 * 8
    assert Path(index.file.path).read_bytes()[:64] != entries
    return entries


def test_a_log_writes_them_for_who_reads_its_files_by_name(tmp_path: Path) -> None:
    options = LogOptions(config=CONFIG, scheduler=ManualScheduler(lambda: 0), clock=lambda: NOW_MS)
    with kernels_used(True), Log.open(str(tmp_path / "t-0"), options) as log:
        entries = appended(log)
        log.write_indexes()
        assert (tmp_path / "t-0" / f"{0:020}.index").read_bytes()[:64] == entries


FOUND_AT = {
    "deleted later": "*-delete",
    "kept aside": "*-stray",
    "truncated": "t-0",  # with another name
    "let go of": "t-0",
}


@pytest.mark.parametrize("way", FOUND_AT)
def test_they_are_in_the_files_of_a_log_that_is_taken_out_of_use(way: str, tmp_path: Path) -> None:
    """And a manager that is closed leaves no file open."""
    options = ManagerOptions(
        config=CONFIG,
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: 0),
        intervals=BY_HAND,
    )
    with kernels_used(True), LogManager([str(tmp_path)], options) as manager:
        log = manager.create(("t", 0))
        entries = appended(log)
        if way == "truncated":
            log.truncate_fully(10)
        elif way == "let go of":
            log.close_handlers()
        else:
            manager.delete(("t", 0), is_stray=way == "kept aside")
        (found,) = tmp_path.glob(f"{FOUND_AT[way]}/{0:020}.index*")
        assert found.read_bytes()[:64] == entries
        if way == "let go of":
            manager.let_go()
            manager.start()
    assert open_below(tmp_path) == []
