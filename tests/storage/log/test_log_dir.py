"""Listing a log directory, and the log end offset; spec F-1, F-2, F-12.9."""

import os
from pathlib import Path

import pytest

from storage.errors import CorruptFileError
from storage.file_names import Segment
from storage.formats.record import Record
from storage.formats.record_batch import encode_batch
from storage.log.log_dir import list_log_dir, list_partition, log_end_offset


def name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def batch(*offsets: int) -> bytes:
    return encode_batch([Record(offset, 100, b"k", b"v") for offset in offsets])


def write(directory: Path, files: dict[str, bytes]) -> None:
    directory.mkdir(exist_ok=True)
    for file_name, data in files.items():
        (directory / file_name).write_bytes(data)


def test_a_partition_is_listed_with_sizes_times_and_inodes(tmp_path: Path) -> None:
    path = tmp_path / "my-topic-3"
    write(
        path,
        {
            name(20, ".log"): b"12345",
            name(20, ".index"): bytes(8),
            name(20, ".timeindex"): bytes(24),
            name(20, ".txnindex"): bytes(34),
            name(0, ".log"): b"",
            name(3, ".log"): b"1",
            name(3, ".index"): b"",
            name(20, ".snapshot"): b"",
            name(3, ".snapshot"): b"",
            "leader-epoch-checkpoint": b"",
            "partition.metadata": b"",
            "notes.txt": b"",
            name(7, ".index"): b"",  # an index without its log: the broker removes it
        },
    )
    os.utime(path / name(20, ".log"), ns=(0, 1_700_000_000_123_456_789))
    listing = list_log_dir(str(tmp_path))
    (partition,) = listing.partitions
    assert partition[:3] == ("my-topic", 3, str(path)) and partition.name == "my-topic-3"
    assert [segment.base_offset for segment in partition.segments] == [0, 3, 20]
    found = (path / name(20, ".log")).stat()
    mtime_ns = 1_700_000_000_123_456_789
    assert partition.segments[2] == Segment(
        20, 5, 8, 24, 34, mtime_ns, found.st_ino, found.st_ctime_ns, found.st_dev
    )
    assert partition.segments[1][:5] == (3, 1, 0, None, None)
    assert partition.snapshot_offsets == (3, 20)
    (without,) = list_log_dir(str(tmp_path), with_files=False).partitions
    assert len(partition.files) == 12 and without == partition._replace(files=())
    assert partition.unfinished == partition.stray == ()


def test_what_is_half_done_and_what_a_broker_trips_over_is_told_apart(tmp_path: Path) -> None:
    unfinished = [
        name(0, ".log.cleaned"),
        name(0, ".timeindex.swap"),
        name(5, ".snapshot.deleted"),
        "anything.deleted",  # only removed, its offset is not looked at
    ]
    stray = ["x.log", ".index", "a.timeindex", "b.txnindex", "c.snapshot", "d.swap", "e.cleaned"]
    stray += ["5.log"]  # a broker would look for 00000000000000000005.log, and make it
    write(tmp_path / "t-0", dict.fromkeys((*unfinished, *stray, "ignored.tmp", "readme"), b""))
    (tmp_path / "t-0" / name(9, ".log")).mkdir()
    (partition,) = list_log_dir(str(tmp_path)).partitions
    assert partition.unfinished == tuple(sorted(unfinished))
    assert partition.stray == tuple(sorted(stray))  # F-2.5
    assert partition.segments == ()


def test_directories_without_a_log_to_work_on_are_ignored_with_a_reason(tmp_path: Path) -> None:
    special = f"t-1.{'ab' * 16}-delete"
    for directory in ("t-10", "t-9", "a-0", special, "__cluster_metadata-0", "lost+found"):
        (tmp_path / directory).mkdir()
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"")
    (tmp_path / "t-99").write_bytes(b"a file")
    listing = list_log_dir(str(tmp_path))
    assert [p.name for p in listing.partitions] == ["a-0", "t-9", "t-10"]
    reasons = dict(listing.ignored)
    assert reasons.keys() == {
        special,
        "__cluster_metadata-0",
        "lost+found",
        "remote-log-index-cache",
    }
    assert "being deleted" in reasons[special]
    assert "would fail" in reasons["lost+found"]  # F-1.4
    assert "KRaft" in reasons["__cluster_metadata-0"]
    assert not listing.has_clean_shutdown and not listing.has_meta_properties


def test_the_markers_of_a_log_directory_are_seen(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b"")
    (tmp_path / "meta.properties").write_bytes(b"")
    listing = list_log_dir(str(tmp_path))
    assert listing.has_clean_shutdown and listing.has_meta_properties


def test_a_log_directory_that_is_not_there_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_log_dir(str(tmp_path / "none"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        list_log_dir(str(tmp_path / "file"))


def test_a_partition_that_vanishes_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for directory in ("t-0", "t-1"):
        (tmp_path / directory).mkdir()
    scandir = os.scandir

    def vanishing(path: str) -> "os._ScandirIterator[str]":
        if path.endswith("t-0"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    listing = list_log_dir(str(tmp_path))
    assert [p.name for p in listing.partitions] == ["t-1"]
    assert listing.ignored == (("t-0", "cannot be listed: No such file or directory"),)


def end_of(directory: Path) -> int:
    return log_end_offset(list_partition(str(directory), "t", 0))


def test_the_log_ends_behind_the_last_batch_of_the_last_segment(tmp_path: Path) -> None:  # F-12.9
    write(
        tmp_path, {name(0, ".log"): b"not looked at", name(10, ".log"): batch(10) + batch(12, 15)}
    )
    assert end_of(tmp_path) == 16


def test_an_empty_last_segment_ends_at_its_base_offset(tmp_path: Path) -> None:
    write(tmp_path, {name(0, ".log"): batch(0), name(10, ".log"): b"", name(10, ".index"): b""})
    assert end_of(tmp_path) == 10


def test_a_log_without_segments_ends_at_zero(tmp_path: Path) -> None:
    assert end_of(tmp_path) == 0


def entry(relative_offset: int, position: int) -> bytes:
    return relative_offset.to_bytes(4, "big", signed=True) + position.to_bytes(
        4, "big", signed=True
    )


@pytest.mark.parametrize("zeros", [0, 8, 80])
def test_the_walk_starts_at_the_last_index_entry(tmp_path: Path, zeros: int) -> None:
    first, second, third = batch(10), batch(12, 15), batch(16)
    garbage = bytes(len(first))  # would not do as a batch
    index = entry(5, len(first)) + bytes(zeros)
    write(tmp_path, {name(10, ".log"): garbage + second + third, name(10, ".index"): index})
    assert end_of(tmp_path) == 17


def test_the_last_entry_may_be_for_a_batch_of_one_record(tmp_path: Path) -> None:
    index = entry(1, 70)
    write(tmp_path, {name(10, ".log"): batch(10) + batch(11), name(10, ".index"): index})
    assert end_of(tmp_path) == 12


@pytest.mark.parametrize(
    "last_entry", [(5, 69), (5, 71), (5, 1000), (5, -1), (1, 70), (-1, 70), (6, 149)]
)
def test_an_index_that_does_not_match_its_log_is_corrupt(
    tmp_path: Path, last_entry: tuple[int, int]
) -> None:
    first, second = batch(10), batch(12, 15)
    assert (len(first), len(first + second)) == (70, 149)
    write(tmp_path, {name(10, ".log"): first + second, name(10, ".index"): entry(*last_entry)})
    with pytest.raises(CorruptFileError, match=r"10\.index, byte 8: the last entry, offset"):
        end_of(tmp_path)


@pytest.mark.parametrize("kept", range(1, 70))
def test_a_torn_tail_is_corrupt(tmp_path: Path, kept: int) -> None:  # F-3.3, more strictly
    write(tmp_path, {name(0, ".log"): batch(0) + batch(1)[:kept]})
    with pytest.raises(CorruptFileError, match=r"00\.log, byte 70"):
        end_of(tmp_path)


def test_batches_out_of_order_are_corrupt(tmp_path: Path) -> None:
    write(tmp_path, {name(0, ".log"): batch(0, 5) + batch(5)})
    with pytest.raises(CorruptFileError, match="byte 79: base offset 5, expected 6 or more"):
        end_of(tmp_path)
    write(tmp_path, {name(0, ".log"): b"", name(6, ".log"): batch(5)})
    with pytest.raises(CorruptFileError, match="byte 0: base offset 5, expected 6 or more"):
        end_of(tmp_path)
