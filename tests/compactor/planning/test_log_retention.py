"""What retention knows of a log by its files: limits of its topic, times of its segments."""

import os
from pathlib import Path

import pytest

from compactor.log_dirs.survey import CheckpointOffsets
from compactor.planning.log_retention import deletion_of, limits_of
from compactor.settings.config import load_config
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.log.log_dir import list_partition
from storage.log.retention import RetentionLimits, RetentionRule
from tests.support.made_log import batch, log_of, make_partition, record

NOW_MS = 10_000
OFFSETS = CheckpointOffsets(cleaner=None, log_start=3, high_watermark=9, high_watermark_cause="")


@pytest.mark.parametrize(
    ("policy", "settings", "by_time", "by_size"),
    [
        ("compact", {"retention.ms": "5", "retention.bytes": "7"}, None, None),
        ("compact,delete", {"retention.ms": "5", "retention.bytes": "7"}, 5, 7),
        ("compact,delete", {"retention.ms": "-1", "retention.bytes": "0"}, None, 0),
        ("compact,delete", {"retention.ms": "0", "retention.bytes": "-1"}, 0, None),
        ("compact,delete", {}, 7 * 86_400_000, None),
    ],
)
def test_limits(
    policy: str, settings: dict[str, str], by_time: int | None, by_size: int | None
) -> None:
    """Of time and size only if the policy has delete; -1 is no limit (C-3.2)."""
    config = load_config(settings={"cleanup.policy": policy, **settings}).topic("t")
    limits = limits_of(config, OFFSETS, NOW_MS)
    assert limits == RetentionLimits(3, 9, NOW_MS, by_time, by_size)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Segments 0, 1 and 2 of a record each, of 7000, 8000 and 9000 ms, all modified at 9999 ms."""
    segments = {n: [batch(record(n, b"k", timestamp=7000 + 1000 * n))] for n in range(3)}
    partition = make_partition(tmp_path, segments)
    for path in partition.iterdir():
        os.utime(path, ns=(9_999_000_000, 9_999_000_000))
    return partition


def gone(partition: Path, retention_ms: int) -> list[int]:
    limits = RetentionLimits(0, None, NOW_MS, retention_ms)
    deletion = deletion_of(list_partition(str(partition), "orders", 0), limits)
    return [segment.base_offset for segment in deletion.by_rule.get(RetentionRule.TIME, ())]


@pytest.mark.parametrize(
    ("retention_ms", "bases"), [(3000, []), (2999, [0]), (1999, [0, 1]), (999, [0, 1, 2])]
)
def test_times_are_those_of_the_time_indexes(
    partition: Path, retention_ms: int, bases: list[int]
) -> None:
    assert gone(partition, retention_ms) == bases


@pytest.mark.parametrize("base_offset", [0, 2], ids=["inactive", "active"])
def test_without_entries_the_time_of_the_file_counts(partition: Path, base_offset: int) -> None:
    (partition / file_name(base_offset, TIME_INDEX)).write_bytes(b"")
    assert gone(partition, 999) == list(range(base_offset))


def test_the_time_index_of_the_active_segment_may_be_filled_up_with_zeros(partition: Path) -> None:
    """A broker that runs has it at its full size (F-12.8); a torn entry at the end is none."""
    path = partition / file_name(2, TIME_INDEX)
    path.write_bytes(path.read_bytes() + bytes(24) + b"\x01")
    assert gone(partition, 1000) == [0, 1]
    assert gone(partition, 999) == [0, 1, 2]
    path.write_bytes(bytes(36))  # without any entry the time of the file counts
    assert gone(partition, 999) == [0, 1]


ZEROS = bytes(12)  # what a power cut leaves of a file that was never written


@pytest.mark.parametrize("index", [ZEROS, bytes(36), b""], ids=["an entry", "full", "empty"])
def test_a_time_index_that_its_batches_contradict_deletes_nothing(
    partition: Path, index: bytes
) -> None:
    (partition / file_name(0, TIME_INDEX)).write_bytes(index)
    os.utime(log_of(partition, 0), ns=(5_000_000_000, 5_000_000_000))
    with pytest.raises(CorruptFileError, match="batch with timestamp 7000") as caught:
        gone(partition, 3000)
    assert caught.value.path == str(partition / file_name(0, TIME_INDEX))


def test_no_entry_of_the_active_segment_is_earlier_than_a_batch_before_it(partition: Path) -> None:
    (partition / file_name(2, TIME_INDEX)).write_bytes(ZEROS)
    with pytest.raises(CorruptFileError, match="batch with timestamp 9000"):
        gone(partition, 1000)


def test_an_active_segment_is_as_young_as_the_batches_that_have_no_entry_yet(
    tmp_path: Path,
) -> None:
    """A broker adds an entry every index.interval.bytes."""
    batches = [batch(record(n, b"k", timestamp=7000 + 1000 * n)) for n in range(3)]
    partition = make_partition(tmp_path, {0: batches})
    (partition / file_name(0, TIME_INDEX)).write_bytes((7000).to_bytes(8, "big") + bytes(4))
    assert gone(partition, 1000) == []
    assert gone(partition, 999) == [0]


def test_without_an_index_the_batches_are_read(partition: Path) -> None:
    """A broker that starts makes both indexes anew (F-16.1), whatever the time index says."""
    (partition / file_name(0, INDEX)).unlink()
    (partition / file_name(0, TIME_INDEX)).write_bytes(b"")
    assert gone(partition, 2999) == [0]


def test_a_damaged_end_matters_where_the_answer_depends_on_it(partition: Path) -> None:
    log = log_of(partition, 2)
    log.write_bytes(log.read_bytes()[:-1])
    assert gone(partition, 1999) == [0, 1]
    with pytest.raises(CorruptFileError, match=file_name(2, LOG)):
        gone(partition, 999)
