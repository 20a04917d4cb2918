"""A log of more segments than a process may have files open."""

import os
import resource
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compactor import Log, LogManager, LogOptions, ManagerOptions
from storage.file_names import INDEX, LOG, TIME_INDEX
from storage.files.file_pool import FilePool
from storage.files.local import LOCAL
from storage.log.index_files import TIME_ENTRY
from storage.log.loading import LoadingState
from storage.log.log_config import LogConfig
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch
from tests.support.file_operations import FileOperations

NOW_MS = 1_700_000_000_000
SEGMENTS = 2_000
MOST = 100


def now_ms() -> int:
    return NOW_MS


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process may have 256 files open. It does not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def write_segments(directory: Path, count: int) -> None:
    """A log of segments of one batch each, with indexes as they are where the last one ended."""
    directory.mkdir()
    for offset in range(count):
        stem = directory / f"{offset:020}"
        stem.with_suffix(LOG).write_bytes(batch(offset, NOW_MS + offset))
        stem.with_suffix(INDEX).touch()
        stem.with_suffix(TIME_INDEX).write_bytes(TIME_ENTRY.pack(NOW_MS + offset, 0))


def open_below(directory: Path) -> int:
    descriptors = os.listdir("/proc/self/fd")
    found = [os.path.realpath(f"/proc/self/fd/{number}") for number in descriptors]
    return sum(path.startswith(f"{directory}/") for path in found)


def test_a_log_of_many_segments_does_everything_with_few_files(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    write_segments(path, SEGMENTS)
    now = [NOW_MS]
    scheduler = ManualScheduler(lambda: now[0])
    options = LogOptions(
        clock=now_ms,
        scheduler=scheduler,
        config=LogConfig(segment_bytes=len(batch(0, 0)), index_interval_bytes=1),
        files=LOCAL,
        max_open_files=MOST,
        state=LoadingState(is_clean=True),
    )
    with Log.open(str(path), options) as log:
        assert (log.log_end_offset, len(log.segments)) == (SEGMENTS, SEGMENTS)
        for offset in range(0, SEGMENTS, 7):
            assert log.read(offset).read() == batch(offset, NOW_MS + offset)
        assert open_below(path) <= MOST
        found = log.offset_by_timestamp(NOW_MS + 1_500)
        assert found is not None
        assert found.offset == 1_500
        for offset in range(SEGMENTS, SEGMENTS + 20):
            log.append_as_leader(batch(0, NOW_MS + offset))
        assert (log.log_end_offset, len(log.segments)) == (SEGMENTS + 20, SEGMENTS + 20)
        log.flush()
        log.follow_end()
        assert log.increment_log_start(500)
        assert log.delete_old_segments() == 500
        now[0] += 60_000
        scheduler.tick()
        assert len(list(path.glob(f"*{LOG}"))) == len(log.segments) == SEGMENTS + 20 - 500
        assert log.truncate_to(1_800)
        assert log.read(1_799).read() == batch(1_799, NOW_MS + 1_799)
        log.append_as_leader(batch(0, NOW_MS + 1_800))
        assert log.read(1_800).read() == batch(1_800, NOW_MS + 1_800)
        assert open_below(path) <= MOST
        now[0] += 60_000
        scheduler.tick()  # what was cut off is deleted
    assert open_below(path) == 0
    unclean = replace(
        options, state=LoadingState(is_clean=False, log_start=500, recovery_point=1_790)
    )
    with Log.open(str(path), unclean) as log:
        assert (log.log_start_offset, log.log_end_offset) == (500, 1_801)
        assert open_below(path) <= MOST


class CountingPool(FilePool):
    """Counts the names that it has listed."""

    names = 0

    def list_names(self, path: str) -> tuple[list[str], list[str]]:
        listed = super().list_names(path)
        self.names += len(listed[1])
        return listed


def test_recovering_a_log_takes_as_much_for_each_segment_however_many_there_are(
    tmp_path: Path,
) -> None:
    def recovered(count: int) -> tuple[int, Counter[str]]:
        """The names that were listed, and the operations on files, by kind."""
        path = tmp_path / f"t-{count}"
        write_segments(path, count)
        done: Counter[str] = Counter()
        pool = CountingPool(LOCAL, MOST)
        options = LogOptions(
            clock=now_ms,
            scheduler=ManualScheduler(now_ms),
            config=LogConfig(segment_index_bytes=120),
            files=pool,
            state=LoadingState(is_clean=False),
        )
        operations = FileOperations(path, lambda operation: done.update([operation.kind]))
        with operations.listening():
            log = Log.open(str(path), options)
            log.close_handlers()
        assert (log.log_end_offset, len(log.segments)) == (count, count)
        return pool.names, done

    few_names, few = recovered(100)
    (names, done), (more_names, more) = recovered(200), recovered(300)
    assert more_names - names == names - few_names > 0
    assert more - done == done - few
    assert sum((done - few).values()) < 100 * 40


def test_the_logs_of_a_manager_share_their_files(tmp_path: Path) -> None:
    for number in range(20):
        write_segments(tmp_path / f"t-{number}", 30)
    options = ManagerOptions(clock=now_ms, max_open_files=MOST, intervals=BY_HAND)
    with LogManager([str(tmp_path)], options) as manager:
        for log in manager.logs.values():
            assert log.log_end_offset == 30
            assert [log.read(at).read() for at in (3, 17)] == [
                batch(at, NOW_MS + at) for at in (3, 17)
            ]
        assert open_below(tmp_path) <= MOST + 1  # the lock
    assert open_below(tmp_path) == 0
