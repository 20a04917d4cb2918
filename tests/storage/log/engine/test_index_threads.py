"""An index that several threads need first, and a flush beside what resizes it."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from storage.files.files import ChangingFile
from storage.files.local import LocalFiles
from storage.log.engine.time_index_file import ENTRY, TimeIndexFile

MAX_BYTES = 100 * ENTRY.size


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
        opened = [threads.submit(index.opened) for _ in range(2)]
        files = [future.result() for future in opened]
    assert files[0] is files[1]
    assert (files[0].entries, files[0].max_entries) == (0, 100)  # and not full of zeros
    index.maybe_append(5, 3)
    assert index.last == (5, 3)
    index.file.close()


def test_a_flush_beside_a_resize_finds_an_open_file(tmp_path: Path) -> None:
    index = TimeIndexFile(LocalFiles(), str(tmp_path / "0.timeindex"), 0, MAX_BYTES)
    index.opened()
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            index.file.flush()

    with ThreadPoolExecutor(1) as threads:
        flushed = threads.submit(flush)
        for number in range(300):
            index.file.resize(ENTRY.size * (10 + number % 7))
        stop.set()
        flushed.result()
    index.file.close()
