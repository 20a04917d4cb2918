"""How a log manager closes logs whose indexes are damaged, as each Kafka does (V-7).

What is expected is what the log managers of 4.3.1 and 4.4.0 leave: `python -m tests.engine
--manager` comes upon both cases.
"""

import contextlib
from struct import Struct

import pytest

from compactor import LogManager, ManagerOptions
from storage.formats import checkpoint, clean_shutdown
from storage.kafka_versions import BY_NAME
from storage.log.manager_options import BY_HAND
from storage.log.scheduler import ManualScheduler
from tests.storage.log.batches_for_tests import batch
from tests.support.files.memory import MemoryFiles

NOW_MS = 1_700_000_000_000
TIME_ENTRY = Struct(">qi")
TIMES = "/a/t-0/00000000000000000000.timeindex"
RECOVERY = "/a/recovery-point-offset-checkpoint"
UP_TO_4_3 = ("4.1", "4.2", "4.3")


def _manager(files: MemoryFiles, kafka: str) -> LogManager:
    options = ManagerOptions(
        clock=lambda: NOW_MS,
        scheduler=ManualScheduler(lambda: NOW_MS),
        files=files,
        lock=lambda _: contextlib.nullcontext(),
        intervals=BY_HAND,
        kafka=BY_NAME[kafka],
    )
    return LogManager(["/a"], options)


def _closed_log(kafka: str) -> MemoryFiles:
    files = MemoryFiles()
    with _manager(files, kafka) as manager:
        manager.create(("t", 0)).append_as_leader(batch(0, NOW_MS))
    return files


@pytest.mark.parametrize("kafka", BY_NAME)
def test_a_time_index_that_refuses_the_last_entry_costs_the_marker_since_4_4(kafka: str) -> None:
    files = _closed_log(kafka)
    ahead = TIME_ENTRY.pack(NOW_MS, 100)
    files.replace_file(TIMES, ahead)
    manager = _manager(files, kafka)
    manager.start()
    manager.logs["t", 0].append_as_leader(batch(0, NOW_MS + 5))
    failed = manager.close()
    assert clean_shutdown.exists("/a", files) is (kafka in UP_TO_4_3)
    assert checkpoint.read(RECOVERY, files) == {("t", 0): 2 if kafka in UP_TO_4_3 else 1}
    if kafka in UP_TO_4_3:
        assert failed == []
        assert files.read_bytes(TIMES) == ahead
    else:
        assert [each.log_dir for each in failed] == ["/a"]
        assert "offset 1 is below 100" in str(failed[0].error)


@pytest.mark.parametrize("kafka", BY_NAME)
def test_after_that_the_next_start_makes_the_index_anew(kafka: str) -> None:
    files = _closed_log(kafka)
    files.replace_file(TIMES, TIME_ENTRY.pack(NOW_MS, 100))
    manager = _manager(files, kafka)
    manager.start()
    manager.logs["t", 0].append_as_leader(batch(0, NOW_MS + 5))
    manager.close()
    with _manager(files, kafka) as again:
        assert again.logs["t", 0].log_end_offset == 2
    last = TIME_ENTRY.pack(NOW_MS + 5, 1)
    assert files.read_bytes(TIMES).endswith(last) is (kafka not in UP_TO_4_3)


@pytest.mark.parametrize("kafka", BY_NAME)
def test_an_index_of_a_closed_segment_is_trimmed_up_to_4_3(kafka: str) -> None:
    files = _closed_log(kafka)
    with _manager(files, kafka) as manager:
        manager.logs["t", 0].roll()
        manager.logs["t", 0].append_as_leader(batch(0, NOW_MS + 5))
    entry = files.read_bytes(TIMES)
    assert len(entry) == TIME_ENTRY.size
    files.replace_file(TIMES, entry + bytes(8))  # no whole entry more
    with _manager(files, kafka) as manager:
        assert manager.logs["t", 0].offset_by_timestamp(NOW_MS) is not None  # which opens it
    assert len(files.read_bytes(TIMES)) == len(entry) + (0 if kafka in UP_TO_4_3 else 8)
