"""What can be seen of a start, while logs are loaded: L-26.7."""

import contextlib
from dataclasses import replace

from compactor import LogManager, ManagerOptions
from storage.log.log_config import LogConfig
from storage.log.manager_options import BY_HAND, LoadingProgress
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch
from tests.support.files.memory import MemoryFiles
from tests.support.files.watched import Operation, WatchedFiles


def test_a_start_tells_which_logs_and_segments_are_left() -> None:
    """Two logs of one directory, one of them with three segments; the process ended in between."""
    disk = MemoryFiles()
    options = ManagerOptions(
        clock=lambda: 1_700_000_000_000,
        scheduler=ManualScheduler(lambda: 1_700_000_000_000),
        files=disk,
        lock=contextlib.nullcontext,
        config=LogConfig().changed({"segment.bytes": "80"}),
        recovery_threads=1,
        intervals=BY_HAND,
    )
    with contextlib.suppress(KeyboardInterrupt), LogManager(["/a"], options) as manager:
        first = manager.create(("t", 0))
        for _ in range(3):
            first.append_as_leader(batch(0, 5))
        manager.create(("t", 1))
        raise KeyboardInterrupt
    progress = LoadingProgress()
    logs: list[int] = []
    segments: list[int] = []

    def look(_: Operation) -> None:
        logs.extend(progress.remaining_logs.values())
        segments.extend(progress.remaining_segments.values())

    again = replace(options, files=WatchedFiles(disk, look), progress=progress)
    with LogManager(["/a"], again) as manager:
        assert (progress.remaining_logs, progress.remaining_segments) == ({}, {})
        assert manager.logs[("t", 0)].log_end_offset == 3
    assert sorted({*logs}, reverse=True) == [2, 1]
    changes = [n for n, before in zip(segments, [-1, *segments], strict=False) if n != before]
    assert changes in ([0, 3, 2, 1, 0, 1, 0], [0, 1, 0, 3, 2, 1, 0])
