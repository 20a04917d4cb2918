"""What the checkpoints of log directories say, alone and together (C-4.3, C-23, F-12.8, F-13)."""

import os
from pathlib import Path
from struct import pack

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.survey import (
    conflicts,
    first_batch_timestamp_ms,
    largest_timestamp_ms,
    offsets_of,
    stray_entries,
    survey_log_dir,
    survey_log_dirs,
)
from storage.file_names import LOG, TIME_INDEX, file_name
from storage.formats import checkpoint, clean_shutdown
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.log.log_dir import PartitionListing
from tests.compactor.plan_logs import Shape, build, clean_up_to


def only(log_dir: str) -> PartitionListing:
    (partition,) = survey_log_dir(log_dir).listing.partitions
    return partition


def write_offset(log_dir: str, name: str, offset: int) -> None:
    checkpoint.write(os.path.join(log_dir, name), {("t", 0): offset})


def test_a_directory_is_looked_at_once_however_it_is_named(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    other = build(tmp_path / "e")
    (tmp_path / "link").symlink_to("d")
    surveys = survey_log_dirs([log_dir, other, f"{log_dir}/.", str(tmp_path / "link")])
    assert [survey.path for survey in surveys] == [log_dir, other]


def test_a_directory_that_cannot_be_listed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"/none: No such file or directory"):
        survey_log_dirs([str(tmp_path / "none")])
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="/file: Not a directory"):
        survey_log_dirs([str(tmp_path / "file")])


@pytest.mark.parametrize(
    ("written", "offsets"),
    [
        ({}, (None, 0, 6)),  # never cleaned
        (
            {checkpoint.CLEANER_OFFSET: 2, checkpoint.LOG_START: 1, checkpoint.REPLICATION: 5},
            (2, 1, 5),
        ),
        ({checkpoint.REPLICATION: 1, checkpoint.LOG_START: 3}, (None, 3, 3)),  # C-23.2
    ],
)
def test_offsets_come_from_the_checkpoints(
    tmp_path: Path, written: dict[str, int], offsets: tuple[int | None, int, int]
) -> None:
    log_dir = build(tmp_path / "d")
    for name, offset in written.items():
        write_offset(log_dir, name, offset)
    survey = survey_log_dir(log_dir)
    found = offsets_of(survey.listing.partitions[0], survey, False)
    assert found == (*offsets, "replication-offset-checkpoint")


def test_the_log_starts_at_its_first_segment_at_the_earliest(tmp_path: Path) -> None:
    """C-23.1."""
    log_dir = build(tmp_path / "d")
    for path in (tmp_path / "d" / "t-0").glob("*0.log"):
        path.unlink()
    survey = survey_log_dir(log_dir)
    assert offsets_of(survey.listing.partitions[0], survey, False).log_start == 2


def test_a_log_without_high_watermark_has_none_replicated(tmp_path: Path) -> None:
    """F-13.4: missing in the file is 0; without a file the log end offset is meant."""
    log_dir = build(tmp_path / "d")
    path = tmp_path / "d" / checkpoint.REPLICATION
    for written in (b"0\n1\nother 0 5\n", b"0\n0\n", b""):
        path.write_bytes(written)
        survey = survey_log_dir(log_dir)
        found = offsets_of(survey.listing.partitions[0], survey, False)
        assert found[2:] == (0, "no entry in replication-offset-checkpoint")
    path.unlink()
    survey = survey_log_dir(log_dir)
    found = offsets_of(survey.listing.partitions[0], survey, False)
    assert found.high_watermark is None
    assert "there is no replication-offset-checkpoint" in found.high_watermark_cause


@pytest.mark.parametrize(
    ("is_clean", "age_s", "expected"),
    [(False, 1, 0), (False, 0, 5), (False, -1, 5), (True, 1, 5)],
)
def test_a_high_watermark_that_is_older_than_its_log_does_not_count(
    tmp_path: Path, is_clean: bool, age_s: int, expected: int
) -> None:
    """F-13.7: the topic was deleted and created again, and the broker killed within seconds."""
    log_dir = build(tmp_path / "d")
    write_offset(log_dir, checkpoint.REPLICATION, 5)
    created = tmp_path / "d" / "t-0" / PARTITION_METADATA
    created.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    for path, time_s in ((created, 1000), (tmp_path / "d" / checkpoint.REPLICATION, 1000 - age_s)):
        os.utime(path, (time_s, time_s))
    if is_clean:
        clean_shutdown.write(log_dir)
    else:
        (tmp_path / "d" / clean_shutdown.CLEAN_SHUTDOWN).unlink(missing_ok=True)
    survey = survey_log_dir(log_dir)
    found = offsets_of(survey.listing.partitions[0], survey, False)
    assert found.high_watermark == expected


def test_full_replication_may_be_assumed(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    write_offset(log_dir, checkpoint.REPLICATION, 1)
    survey = survey_log_dir(log_dir)
    found = offsets_of(survey.listing.partitions[0], survey, True)
    assert (found.high_watermark, found.high_watermark_cause) == (
        None,
        "taken to be the log end offset, as asked for",
    )


@pytest.mark.parametrize(
    "name", [checkpoint.CLEANER_OFFSET, checkpoint.LOG_START, checkpoint.REPLICATION]
)
@pytest.mark.parametrize(
    ("content", "position"), [(b"0\n1\nt 0\n", 4), (b"0\n2\nt 0 1\n", 2), (b"0\n1\nt 0 x\n", 4)]
)
def test_a_malformed_checkpoint_spoils_its_directory(
    tmp_path: Path, name: str, content: bytes, position: int
) -> None:
    """C-4.3, F-13.2."""
    log_dir = build(tmp_path / "d")
    (tmp_path / "d" / name).write_bytes(content)
    problem = survey_log_dir(log_dir).problem
    assert problem is not None
    assert problem.startswith(f"{log_dir}/{name}, byte {position}: ")


def test_an_unreadable_checkpoint_spoils_its_directory(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    (tmp_path / "d" / checkpoint.CLEANER_OFFSET).unlink(missing_ok=True)
    (tmp_path / "d" / checkpoint.CLEANER_OFFSET).mkdir()
    survey = survey_log_dir(log_dir)
    told = "is a directory, not a file"
    assert survey.problem == f"{log_dir}/cleaner-offset-checkpoint, byte 0: {told}"


def test_a_log_that_two_directories_have_is_in_conflict(tmp_path: Path) -> None:
    one, other = build(tmp_path / "1"), build(tmp_path / "2")
    found = conflicts(survey_log_dirs([one, other]), lambda _: False)
    problem = "a broker would not start with both, unless their topic ids differ: then it renames"
    assert found == {("t", 0): f"is in {one} and {other}: {problem} one to -stray"}


def test_a_checkpoint_entry_in_two_directories_is_stray_in_one(tmp_path: Path) -> None:
    """C-4.3: it ends the cleaner thread of 4.3.1."""
    one = build(tmp_path / "1", Shape("t"), Shape("v"))
    other = build(tmp_path / "2", Shape("u"))
    clean_up_to(tmp_path / "1", ("t", 0, 2), ("v", 0, 2))
    clean_up_to(tmp_path / "2", ("t", 0, 2), ("u", 0, 2), ("gone", 0, 2))
    assert conflicts(survey_log_dirs([one, other]), lambda _: False) == {}
    assert stray_entries(survey_log_dirs([one, other])) == {("t", 0): {other: 2}}


def test_a_checkpoint_entry_in_another_directory_is_stray(tmp_path: Path) -> None:
    """C-4.3: a cleaning would write the second one."""
    one, other = build(tmp_path / "1"), build(tmp_path / "2", Shape("u"))
    clean_up_to(tmp_path / "2", ("t", 0, 2), ("u", 0, 2))
    assert stray_entries(survey_log_dirs([one, other])) == {("t", 0): {other: 2}}


def test_directories_without_anything_in_common_have_no_conflicts(tmp_path: Path) -> None:
    one, other = build(tmp_path / "1"), build(tmp_path / "2", Shape("t", 1))
    clean_up_to(tmp_path / "1", ("t", 0, 2))
    assert conflicts(survey_log_dirs([one, other]), lambda _: False) == {}


def test_the_largest_timestamp_is_the_last_of_the_time_index(tmp_path: Path) -> None:
    """F-10.5, F-12.8."""
    log_dir = build(tmp_path / "d")
    partition = only(log_dir)
    assert [largest_timestamp_ms(partition, s) for s in partition.segments] == [1000, 2000, 3000]
    index = Path(partition.path) / file_name(2, TIME_INDEX)
    index.write_bytes(pack(">qiqi", 7, 0, 9, 1) + b"an entry")  # cut short: as if it were not there
    partition = only(log_dir)
    assert largest_timestamp_ms(partition, partition.segments[1]) == 9


@pytest.mark.parametrize("content", [b"", b"shorter", bytes.fromhex("ff" * 8 + "00000000"), None])
def test_without_timestamps_it_is_the_whole_milliseconds_of_the_logs_time(
    tmp_path: Path, content: bytes | None
) -> None:
    """F-12.8, C-1.1: ns on disk, ms in Kafka, cut off and not rounded."""
    log_dir = build(tmp_path / "d")
    index = tmp_path / "d" / "t-0" / file_name(0, TIME_INDEX)
    if content is None:
        index.unlink()
    else:
        index.write_bytes(content)
    os.utime(tmp_path / "d" / "t-0" / file_name(0, LOG), ns=(0, 5_000_999_999))
    partition = only(log_dir)
    assert largest_timestamp_ms(partition, partition.segments[0]) == 5000


def test_the_first_batch_timestamp_is_the_first_batchs(tmp_path: Path) -> None:
    """F-12.8."""
    log_dir = build(tmp_path / "d")
    log = tmp_path / "d" / "t-0" / file_name(0, LOG)
    batch = log.read_bytes()
    later = (tmp_path / "d" / "t-0" / file_name(2, LOG)).read_bytes()
    log.write_bytes(batch + later)
    partition = only(log_dir)
    assert first_batch_timestamp_ms(partition, partition.segments[0]) == 1000
    log.write_bytes(batch[:35] + b"\xff" * 8 + batch[43:])  # max timestamp -1
    assert first_batch_timestamp_ms(partition, partition.segments[0]) is None
    log.write_bytes(b"")
    assert first_batch_timestamp_ms(partition, partition.segments[0]) is None
