"""`verify` over a whole log directory: what it counts, what it finds, what it leaves alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.errors import UsageError
from compactor.host.progress import VERIFY_STAGE
from compactor.log_checks.segment_checks import check_segment
from compactor.verification.verify import Verification, verify
from compactor.views.next_steps import after_verify
from storage.file_names import LOG, SNAPSHOT, Segment, file_name
from storage.files.files import Files
from storage.formats import (
    checkpoint,
    leader_epoch_checkpoint,
    meta_properties,
    producer_snapshot,
)
from storage.formats.leader_epoch_checkpoint import EpochEntry
from storage.formats.meta_properties import MetaProperties
from storage.formats.partition_metadata import PARTITION_METADATA
from storage.formats.producer_snapshot import ProducerEntry
from storage.log.log_dir import list_log_dir
from tests.compactor.small_log import END_OFFSET, build, patch
from tests.storage.log.test_cluster_metadata import A, batches, topic
from tests.storage.log.test_cluster_metadata import log as metadata_log
from tests.support.file_states import state_of

HALF = END_OFFSET // 2


class Told:
    """A sink that remembers."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.done: list[int] = []

    def stage(self, name: str, total: int) -> None:
        self.stages.append((name, total))

    def advance(self, done: int) -> None:
        self.done.append(done)

    def swapped(self, groups: int) -> None:
        raise AssertionError(groups)

    def message(self, text: str, log: str | None = None) -> None:
        raise AssertionError(text, log)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return build(tmp_path / "log")


def verified(partition: Path, only: str | None = None) -> Verification:
    return verify([str(partition.parent)], [only] if only else [], Told())


def only_problem(partition: Path) -> str:
    """The one finding, with the path below the log directory."""
    [finding] = verified(partition).findings
    return str(finding).replace(f"{partition.parent}/", "")


def test_a_sound_log_directory_is_counted_and_left_alone(partition: Path) -> None:
    before = state_of(partition.parent)
    progress = Told()
    found = verify([str(partition.parent)], (), progress)
    assert found.findings == []
    assert (found.partitions, found.segments, found.batches, found.records) == (1, 2, 10, 30)
    assert found.log_bytes == sum(p.stat().st_size for p in partition.glob("*.log"))
    assert progress.stages == [(VERIFY_STAGE, 2)]
    assert progress.done == [1, 2]
    assert state_of(partition.parent) == before


def test_a_partition_that_is_not_there_is_wrong_usage(partition: Path) -> None:
    with pytest.raises(UsageError, match="orders-1: there is no such partition"):
        verified(partition, "orders-1")


def test_one_partition_is_looked_at_alone(partition: Path) -> None:
    (partition.parent / "payments-0").mkdir()
    (partition.parent / "payments-0" / file_name(0, LOG)).write_bytes(b"x" * 100)
    assert verified(partition, "orders-0").findings == []
    assert verified(partition, "payments-0").findings != []


def test_files_that_a_broker_is_about_to_delete_are_no_finding(partition: Path) -> None:
    (partition / file_name(3, ".log.deleted")).write_bytes(b"")
    assert verified(partition).findings == []


Harm = Callable[[Path], object]
OF_HALF = file_name(HALF, SNAPSHOT)
ENTRY = ProducerEntry(7, 0, 3, HALF - 1, 0, 100, None, None)


def with_file(name: str, data: bytes = b"") -> Harm:
    return lambda partition: (partition / name).write_bytes(data)


def with_snapshot(*entries: ProducerEntry, damaged_at: int | None = None) -> Harm:
    def write(partition: Path) -> None:
        path = partition / OF_HALF
        producer_snapshot.write(str(path), entries)
        if damaged_at is not None:
            patch(path, damaged_at, bytes([path.read_bytes()[damaged_at] ^ 0xFF]))

    return write


def without_topic_id(partition: Path) -> None:
    meta_properties.write(str(partition.parent), MetaProperties(1, "cluster", 1, None))
    (partition / PARTITION_METADATA).unlink()


FOUND: list[tuple[Harm, str]] = [
    (
        lambda partition: patch(partition / file_name(HALF, LOG), 30, b"\xff"),
        f"orders-0/{file_name(HALF, LOG)}, byte 0: batch has",
    ),
    # F-2.5
    *(
        (with_file(name), f"orders-0/{name}, byte 0: a broker fails to load")
        for name in ("x.log", "a.index", "backup.snapshot")
    ),
    # broker 4.3.1 finds offset 9 in it
    (with_file("9.log"), "orders-0/9.log, byte 0: no broker writes a file"),
    *(
        (with_file(file_name(0, suffix)), "a cleaning was cut short here")
        for suffix in (".log.cleaned", ".index.swap")
    ),
    # F-14.1: version, CRC, count, entries
    *((with_snapshot(ENTRY, damaged_at=at), f"{OF_HALF}, byte ") for at in (1, 3, 7, 10, 40)),
    # F-14.2: the state below its offset
    (
        with_snapshot(ENTRY, ENTRY._replace(last_offset=HALF)),
        f"orders-0/{OF_HALF}, byte 56: producer 7 has last offset 15, expected below 15",
    ),
    # F-13.2: it would take the log directory offline
    (
        with_file(f"../{checkpoint.CLEANER_OFFSET}", b"0\n2\norders 0 5\n"),
        "cleaner-offset-checkpoint, byte 2: ",
    ),
    # F-13.5
    (without_topic_id, "renames this log to -stray, and makes an empty one"),
]


@pytest.mark.parametrize(("harm", "told"), FOUND)
def test_what_is_wrong_is_found_with_file_and_position(
    partition: Path, harm: Harm, told: str
) -> None:
    harm(partition)
    assert told in only_problem(partition)


def test_a_sound_snapshot_is_no_finding(partition: Path) -> None:
    with_snapshot(ENTRY)(partition)
    assert verified(partition).findings == []


AGAIN = "the next cleaning starts again"


@pytest.mark.parametrize(
    ("name", "past_end", "negative", "helps"),
    [
        (checkpoint.CLEANER_OFFSET, AGAIN, AGAIN, "or leave it: a broker"),
        (
            checkpoint.RECOVERY_POINT,
            "would not check the end",
            "checks the whole log",
            "truncate -s 0 ",
        ),
        (
            checkpoint.REPLICATION,
            "would cut the high watermark",
            "would raise the high watermark",
            "or leave it: a broker",
        ),
        (
            checkpoint.LOG_START,
            "deletes every segment",
            "goes by the first segment",
            "or leave it: a broker",
        ),
    ],
)
def test_a_checkpoint_with_an_offset_that_cannot_be_is_found(
    partition: Path, name: str, past_end: str, negative: str, helps: str
) -> None:
    """F-13, F-16.1 step 6; the log end offset itself is sound.

    With a negative one a broker starts, and loses nothing: no log has to be fetched.
    """
    path = str(partition.parent / name)
    checkpoint.write(path, {("orders", 0): END_OFFSET, ("gone", 3): 10**9})
    assert verified(partition).findings == []
    checkpoint.write(path, {("orders", 0): END_OFFSET + 1})
    assert "orders-0 has offset 31, its log ends at 30" in only_problem(partition)
    assert past_end in only_problem(partition)
    checkpoint.write(path, {("orders", 0): -1})
    assert negative in only_problem(partition)
    found = verified(partition)
    assert found.checkpoints == [path]
    steps = " ".join(after_verify(str(partition.parent), found, None))
    assert helps in steps
    assert "ext: fetch" not in steps


def test_malformed_metadata_files_are_found(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").write_bytes(b"0\n2\n1 5\n0 9\n")
    (partition / "partition.metadata").write_bytes(b"version: 0\n")
    (partition.parent / "meta.properties").write_bytes(b"version=9\n")
    paths = {finding.path.rpartition("/")[2] for finding in verified(partition).findings}
    assert paths == {"leader-epoch-checkpoint", "partition.metadata", "meta.properties"}


def test_a_directory_that_stops_a_broker_is_found(partition: Path) -> None:
    """F-1.4; those that a broker knows are sound."""
    for name in ("lost+found", "__cluster_metadata-0", "remote-log-index-cache"):
        (partition.parent / name).mkdir()
    (partition.parent / f"old-1.{'0' * 32}-delete").mkdir()
    meta_properties.write(str(partition.parent), MetaProperties(1, "cluster", 1, None))
    metadata_log(partition.parent / "__cluster_metadata-0", 0, batches(0, topic("t", A)))
    assert only_problem(partition).startswith("lost+found, byte 0: not named like a partition")


def test_a_log_that_vanishes_meanwhile_is_no_finding(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compactor.verification import verify as module

    real = list_log_dir

    def list_then_delete(path: str, files: Files) -> object:
        listing = real(path, files)
        epochs = str(partition / leader_epoch_checkpoint.LEADER_EPOCH_CHECKPOINT)
        leader_epoch_checkpoint.write(epochs, [EpochEntry(0, HALF)])  # first, as a broker does
        for file in partition.glob(f"{file_name(0, '')}.*"):
            file.unlink()
        return listing

    monkeypatch.setattr(module, "list_log_dir", list_then_delete)
    found = verified(partition)
    assert found.findings == []
    assert found.segments == 1


def test_an_unreadable_file_is_a_finding_and_the_others_are_read(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-16.1, step 1: a broker could not read it either."""
    from compactor.verification import verify as module

    log = str(partition / file_name(0, LOG))
    real = check_segment

    def without_permission(
        directory: str, segment: Segment, next_base: int | None, files: Files
    ) -> object:
        if segment.base_offset == 0:
            raise PermissionError(13, "Permission denied", log)
        return real(directory, segment, next_base, files)

    monkeypatch.setattr(module, "check_segment", without_permission)
    found = verified(partition)
    assert [str(f) for f in found.findings] == [f"{log}, byte 0: cannot be read: Permission denied"]
    assert found.segments == 1


def test_files_that_are_not_kafkas_are_named_and_are_no_finding(partition: Path) -> None:
    for name in ("0.log.bak", f".{file_name(0, LOG)}.Ab12Cd"):
        (partition / name).write_bytes(b"")
    for found in (verified(partition), verified(partition, partition.name)):
        assert found.findings == []
        assert found.notices == (
            f"{partition.parent}: 2 files in partition directories are not Kafka's "
            f"({partition.name}/.{file_name(0, LOG)}.Ab12Cd, {partition.name}/0.log.bak). "
            "No command changes such a file, and --output copies it",
        )
