"""An index that several threads need first, and a flush beside what resizes it."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from storage.files.files import ChangingFile
from storage.files.local import LocalFiles
from storage.log.index_files import OFFSET_ENTRY, TIME_ENTRY, OffsetIndexFile, TimeIndexFile
from storage.log.offsets import LargestTimestamp

MAX_BYTES = 100 * TIME_ENTRY.size


class SlowFiles(LocalFiles):
    """Where two who look for a file at once both find that it is not there."""

    def __init__(self) -> None:
        self.both = threading.Barrier(2)

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        with contextlib.suppress(threading.BrokenBarrierError):
            self.both.wait(0.5)  # for the other one, if he may come this far
        return super().open_to_change(path, create)


def test_an_index_is_opened_once_whoever_needs_it_first(tmp_path: Path) -> None:
    index = TimeIndexFile(SlowFiles(), str(tmp_path / "0.timeindex"), 0, MAX_BYTES)
    with ThreadPoolExecutor(2) as threads:
        opened = [threads.submit(index.file.opened) for _ in range(2)]
        files = [future.result() for future in opened]
    assert files[0] is files[1]
    assert (files[0].entries, files[0].max_entries) == (0, 100)  # and not full of zeros
    index.maybe_append(5, 3)
    assert index.last == (5, 3)
    index.file.close()


def test_a_reader_does_not_put_the_last_entry_back_behind_what_an_append_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L-6: else the next append would add an entry that is there already."""
    path = str(tmp_path / "0.timeindex")
    index = TimeIndexFile(LocalFiles(), path, 0, MAX_BYTES)
    for number in range(3):
        index.maybe_append(number, number)
    index.file.trim()
    index.file.close()
    index = TimeIndexFile(LocalFiles(), path, 0, MAX_BYTES)
    index.file.opened().resize(MAX_BYTES)
    real, reads = TimeIndexFile._at, []

    def meanwhile(self: TimeIndexFile, number: int) -> LargestTimestamp:
        found = real(self, number)
        reads.append(number)
        if len(reads) == 1:
            self.file.add(TIME_ENTRY.pack(7, 9))
        return found

    monkeypatch.setattr(TimeIndexFile, "_at", meanwhile)
    assert index.last in {(2, 2), (7, 9)}  # either is true of some moment
    assert index.last == (7, 9)
    index.maybe_append(7, 9)
    assert index.file.entries == 4
    index.file.close()


def test_a_flush_beside_a_resize_finds_an_open_file(tmp_path: Path) -> None:
    index = TimeIndexFile(LocalFiles(), str(tmp_path / "0.timeindex"), 0, MAX_BYTES)
    index.file.opened()
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            index.file.flush()

    with ThreadPoolExecutor(1) as threads:
        flushed = threads.submit(flush)
        for number in range(300):
            index.file.resize(TIME_ENTRY.size * (10 + number % 7))
        stop.set()
        flushed.result()
    index.file.close()


class SlowSync:
    """A file whose sync waits until it is let go on."""

    def __init__(self, file: ChangingFile) -> None:
        self.in_sync, self.goes_on = threading.Event(), threading.Event()
        self._sync, self.is_open = file.sync, True
        self.read, self.write, self.truncate = file.read, file.write, file.truncate
        self.held, self.size, self.close = file.held, file.size, file.close
        self.renamed = file.renamed

    def sync(self) -> None:
        self.in_sync.set()
        assert self.goes_on.wait(30)
        self._sync()


class SlowlySyncedFiles(LocalFiles):
    def __init__(self) -> None:
        self.opened: list[SlowSync] = []

    def open_to_change(self, path: str, create: bool = False) -> ChangingFile:
        self.opened.append(SlowSync(super().open_to_change(path, create)))
        return self.opened[-1]


def test_an_append_does_not_wait_for_a_flush_and_its_entries_for_the_next(tmp_path: Path) -> None:
    """L-4.6: an entry is in the file at once; what came beside a flush is still to be synced."""
    files, path = SlowlySyncedFiles(), tmp_path / "index"
    index = OffsetIndexFile(files, str(path), 0, 48)  # bytes, all of which are used at the end
    for number in range(1, 5):
        index.append(number, 10 * number)
    with ThreadPoolExecutor(2) as threads:
        flushed = threads.submit(index.file.flush)
        (file,) = files.opened
        assert file.in_sync.wait(30)
        try:

            def append() -> None:
                index.append(5, 50)
                index.append(6, 60)
                index.truncate_to(6)
                index.append(6, 60)

            threads.submit(append).result(30)
            found = [offset for offset, _ in OFFSET_ENTRY.iter_unpack(path.read_bytes())]
            assert found == [*range(1, 7)]
            assert not flushed.done()
        finally:
            file.goes_on.set()
        flushed.result(30)
    file.in_sync.clear()
    index.file.close()
    assert file.in_sync.is_set()
