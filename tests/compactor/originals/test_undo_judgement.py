"""`undo` tells by a log's files whether it is still what the run left; else it stays as it is."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from compactor.errors import RefusedError
from compactor.log_dirs.kept_files import FileMark
from compactor.originals import kept_run
from compactor.originals.kept_manifest import KeptStep, LogBefore
from compactor.originals.undo import UndoStatus
from compactor.originals.undo_judgement import (
    ChangedSinceError,
    check_appended,
    difference,
    left_by,
    steps_done,
)
from compactor.settings.config import load_config
from storage.codecs.compression import Codec
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name
from storage.files.local import LOCAL
from storage.formats import checkpoint, partition_metadata
from storage.formats.partition_metadata import PARTITION_METADATA, PartitionMetadata
from storage.formats.record import Record
from storage.log.log_dir import list_partition
from tests.compactor.originals.test_undo import (
    NOW_MS,
    SMALL_SEGMENTS,
    SOME,
    Kept,
    PowerLoss,
    merged,
)
from tests.support.files.watched import Operation, WatchedDisk
from tests.support.legacy_writer import encode_message_set
from tests.support.local_round import LocalRound
from tests.support.made_log import batch, keyed, log_of, make_partition, record, write_segment
from tests.support.reference_batch import HORIZON, ReferenceBatch, encode

LATER_MS = 2_000_000_000_000
RETAINED = load_config(
    settings={
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": "0",
        "segment.bytes": "600",
        "retention.bytes": "2900",
    }
)


def full(first: int) -> ReferenceBatch:
    """So large that its segment stays one by itself."""
    return batch(*(record(i, b"k%d" % i, b"v" * 900) for i in range(first, first + 3)))


def retained(local: LocalRound, log_dir: Path) -> tuple[Kept, Path]:
    """A run that has deleted the first segment, with an a, and left the others as they were."""
    segments = {0: [keyed(0, "a"), full(1)], 4: [keyed(4, "b"), full(5)], 8: [keyed(8, "c")]}
    orders = make_partition(log_dir, segments)
    kept = Kept(local, log_dir, RETAINED)
    kept.run()
    assert [path.name for path in sorted(orders.glob("*.log"))] == [
        file_name(4, LOG), file_name(8, LOG)
    ]  # fmt: skip
    assert len(list(kept.run_dir.rglob("0*.json"))) == 1
    return kept, orders


def lose_checkpoint(kept: Kept) -> None:
    (kept.log_dir / checkpoint.CLEANER_OFFSET).unlink()


def check_refused(kept: Kept, reason: str) -> None:
    """Every log is left, to the byte."""
    before = kept.files()
    reports = kept.undo()
    assert {(report.status, report.reason) for report in reports} == {(UndoStatus.REFUSED, reason)}
    assert kept.files() == before


# where retention has gone on


def delete_first(partition: Path) -> None:
    """As a broker does: log starts that are base offsets get no entry."""
    first = min(partition.glob("*.log"))
    for path in partition.glob(f"{first.stem}.*"):
        path.unlink()
    log_starts = str(partition.parent / checkpoint.LOG_START)
    entries = checkpoint.read(log_starts)
    entries.pop((partition.name[:-2], int(partition.name[-1])), None)
    checkpoint.write(log_starts, entries)


def test_what_retention_deleted_stays_gone_where_it_has_gone_on(
    local: LocalRound, tmp_path: Path
) -> None:
    """Else there would be a hole, and before it what may have been deleted in it."""
    kept, orders = retained(local, tmp_path / "logs")
    delete_first(orders)
    told = "which the run left, is gone: deleted or cleaned again"
    check_refused(kept, f"{file_name(4, LOG)}, {told}")


def test_what_retention_deleted_stays_gone_where_all_has_gone_since(
    local: LocalRound, tmp_path: Path
) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(log_dir, {0: [keyed(0, "ab")], 2: [keyed(2, "ac")], 4: [keyed(4, "d")]})
    everything = {"cleanup.policy": "compact,delete", "retention.ms": "1"}
    kept = Kept(local, log_dir, load_config(settings=everything))
    kept.run(now_ms=LATER_MS)
    assert [path.name for path in orders.glob("*.log")] == [file_name(5, LOG)]
    delete_first(orders)
    write_segment(orders, 9, [keyed(9, "x")])
    told = f"{file_name(9, LOG)}, written after the run: missing: offsets 5 to 8"
    check_refused(kept, f"cleaned or deleted since: {told}")


# in the place of a deleted topic


ONE, OTHER = UUID(int=1), UUID(int=2)


def set_topic_id(partition: Path, topic_id: UUID | None) -> None:
    path = partition / PARTITION_METADATA
    path.unlink(missing_ok=True)
    if topic_id is not None:
        partition_metadata.write(str(path), PartitionMetadata(0, topic_id))


def created_anew(partition: Path) -> None:
    """What the run left is not there, and what it had deleted is not either."""
    shutil.rmtree(partition)
    make_partition(partition.parent, {0: [keyed(0, "new")]}, partition.name)


def created_alike(partition: Path) -> None:
    """Somebody has written the same to it."""


@pytest.mark.parametrize("create", [created_anew, created_alike])
@pytest.mark.parametrize("ids", [(ONE, OTHER), (ONE, None), (None, OTHER)])
def test_nothing_comes_back_into_a_topic_that_was_created_anew(
    local: LocalRound,
    tmp_path: Path,
    create: Callable[[Path], None],
    ids: tuple[UUID | None, UUID | None],
) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(
        log_dir, {8: [keyed(8, "ab")], 10: [keyed(10, "ac")], 12: [keyed(12, "d")]}
    )
    set_topic_id(orders, ids[0])
    kept = Kept(local, log_dir, SOME)
    kept.run()
    assert len(list(orders.glob("*.log"))) < 3
    create(orders)
    set_topic_id(orders, ids[1])
    texts = [partition_metadata.encode_uuid(i) if i else "missing" for i in ids]
    means = "it is not known whether it is the same topic"
    if None not in ids:
        means = "deleted and created anew"
    check_refused(kept, f"its topic id is {texts[1]}, before the run it was {texts[0]}: {means}")


@pytest.mark.parametrize("topic_id", [ONE, None])
def test_a_topic_with_the_id_that_it_had_is_undone(
    local: LocalRound, tmp_path: Path, topic_id: UUID | None
) -> None:
    """Of older brokers, that wrote none, the files alone decide."""
    kept = Kept(local, merged(tmp_path / "logs"))
    for name in ("orders-0", "prices-3"):
        set_topic_id(kept.log_dir / name, topic_id)
    before = kept.files()
    kept.run()
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE] * 2
    assert kept.files() == before


# while it is being moved


def test_a_log_that_is_being_moved_is_left_until_that_is_over(
    local: LocalRound, tmp_path: Path
) -> None:
    """The copy has none of what the run has deleted, and is put in the place of the log."""
    kept, orders = retained(local, tmp_path / "logs")
    copy = orders.with_name("orders-0.0123456789abcdef0123456789abcdef-future")
    shutil.copytree(orders, copy)
    (report,) = kept.undo()
    assert report.status is UndoStatus.REFUSED
    assert f"it is being moved to {orders.parent}: " in (report.reason or "")
    shutil.rmtree(copy)
    (report,) = kept.undo()
    assert report.status is UndoStatus.UNDONE


# cleaned since, without an entry in the checkpoint that tells of it


def test_a_log_that_was_cleaned_behind_what_the_run_replaced_is_left(
    local: LocalRound, tmp_path: Path
) -> None:
    """The tombstone that hid what the run has removed is gone; it would come back to life.

    The run drops a of offset 0 for that of 4, later ones that for a tombstone, then the tombstone.
    """
    log_dir = tmp_path / "logs"
    segments = {0: [keyed(0, "a"), full(1)], 4: [keyed(4, "a"), full(5)], 8: [keyed(8, "z")]}
    orders = make_partition(log_dir, segments)
    kept = Kept(local, log_dir, SMALL_SEGMENTS)
    kept.run()
    assert len(list(kept.run_dir.rglob("0*.json"))) == 1  # the segment of 4 was left as it was
    write_segment(orders, 9, [keyed(9, "A"), keyed(10, "yy")])
    write_segment(orders, 12, [keyed(12, "z")])
    kept.run(keep=False)
    write_segment(orders, 13, [keyed(13, "z")])
    kept.run(keep=False, now_ms=LATER_MS)
    assert b"a4" not in b"".join(path.read_bytes() for path in orders.glob("*.log"))
    lose_checkpoint(kept)
    check_refused(kept, f"{file_name(4, LOG)} has 2794 bytes, the run left 2865")


def test_a_segment_that_was_active_and_has_been_cleaned_since_is_noticed(
    local: LocalRound, tmp_path: Path
) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(log_dir, {0: [keyed(0, "aa"), full(2)], 5: [keyed(5, "xx")]})
    kept = Kept(local, log_dir, SMALL_SEGMENTS)
    kept.run()
    write_segment(orders, 7, [keyed(7, "z")])
    kept.run(keep=False)
    lose_checkpoint(kept)
    check_refused(kept, f"{file_name(5, LOG)} has 71 bytes, the run left 81")


def test_a_later_cleaning_that_dropped_nothing_is_known_by_its_checkpoint(
    local: LocalRound, tmp_path: Path
) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(log_dir, {0: [keyed(0, "aa"), full(2)], 5: [keyed(5, "xy")]})
    kept = Kept(local, log_dir, SMALL_SEGMENTS)
    kept.run()
    write_segment(orders, 7, [keyed(7, "z")])
    kept.run(keep=False)
    check_refused(kept, "cleaned since: its cleaner checkpoint is at 7, the run left it at 5")


@pytest.mark.parametrize(
    ("rounds", "problem"),
    [
        (1, "cleaned since: {}: the batch at offset 9 has a delete horizon"),
        (2, "cleaned or deleted since: {}: missing: some of offsets 9 to 12"),
    ],
)
def test_what_was_written_since_and_cleaned_is_noticed(
    local: LocalRound, tmp_path: Path, rounds: int, problem: str
) -> None:
    """Of a segment that retention has deleted an a would come back, whose tombstone has gone."""
    kept, orders = retained(local, tmp_path / "logs")
    write_segment(orders, 9, [batch(record(9, b"a", None), *full(10).records)])
    write_segment(orders, 13, [keyed(13, "z")])
    again = Kept(local, orders.parent, SMALL_SEGMENTS)
    for number in range(rounds):
        again.run(keep=False, now_ms=(NOW_MS, LATER_MS)[number])
        write_segment(orders, 14 + number, [keyed(14 + number, "z")])
    lose_checkpoint(kept)
    check_refused(kept, problem.format(f"{file_name(9, LOG)}, written after the run"))


def test_a_run_that_was_killed_is_not_undone_over_what_a_later_one_has_done(
    local: LocalRound, tmp_path: Path
) -> None:
    """It knows of its first step alone; the later one has dropped what hid a tombstone."""
    log_dir = tmp_path / "logs"
    segments = {
        0: [keyed(0, "ab"), full(2)],
        5: [keyed(5, "A"), keyed(6, "ab"), full(8)],
        11: [keyed(11, "z")],
    }
    make_partition(log_dir, segments)
    kept = Kept(local, log_dir, SMALL_SEGMENTS)

    def second_step(operation: Operation) -> None:
        if operation.name == "replace_file" and operation.paths[0].endswith("000001.json"):
            raise PowerLoss

    files = WatchedDisk(LOCAL, second_step)
    with pytest.raises(PowerLoss):
        kept.run(files=files)
    made = [each.paths[0] for each in files.changes if each.name == "replace_file"]
    assert any(path.endswith("000000.json") for path in made)
    kept.run(keep=False)
    lose_checkpoint(kept)
    check_refused(kept, f"{file_name(5, LOG)} has 2876 bytes, the run left 2945")


def test_messages_of_old_formats_count_as_written_since(local: LocalRound, tmp_path: Path) -> None:
    """Those in a wrapper, too, whose first offset they alone tell."""
    log_dir = tmp_path / "logs"
    orders = make_partition(log_dir, {0: [keyed(0, "aa")], 2: [keyed(2, "x")]})
    kept = Kept(local, log_dir)
    before = kept.files()
    kept.run()
    records = [Record(offset, 1000, b"a", b"b") for offset in range(3, 7)]
    written = encode_message_set(1, records[:1]) + encode_message_set(1, records[1:], Codec.GZIP)
    name = f"orders-0/{file_name(2, LOG)}"
    whole = before[name][0] + written
    log_of(orders, 2).write_bytes(before[name][0] + encode_message_set(1, records[1:], Codec.GZIP))
    told = f"{file_name(2, LOG)}, written after the run: missing: offset 3"
    check_refused(kept, f"cleaned or deleted since: {told}")
    log_of(orders, 2).write_bytes(whole)
    assert [report.status for report in kept.undo()] == [UndoStatus.UNDONE]
    now = kept.files()
    assert now.pop(name)[0] == whole and before.pop(name)
    assert now == before


# what an older version has kept


def test_what_an_older_version_has_kept_is_refused_in_words_and_may_be_dropped(
    local: LocalRound, tmp_path: Path
) -> None:
    kept = Kept(local, merged(tmp_path / "logs"))
    kept.run()
    for manifest in kept.run_dir.glob("0/*/*.json"):
        fields = json.loads(manifest.read_text())
        if manifest.name == "log.json":
            manifest.unlink()
            continue
        assert fields["schema_version"] == 2
        older = fields | {"schema_version": 1, "cleaner_offset": None, "log_start_offset": None}
        manifest.write_text(json.dumps(older))
    assert json.loads((kept.run_dir / "run.json").read_text())["schema_version"] == 1
    before = kept.files()
    with pytest.raises(RefusedError, match=r"000000\.json: kept by an older version of compactor"):
        kept.undo()
    assert kept.files() == before
    kept_run.discard(str(kept.run_dir))
    assert not kept.run_dir.exists()


ACTIVE, END = 2, 4  # the base offset of the segment that was active at the run, and the log's end
AS_LEFT = encode(keyed(ACTIVE, "cd"))
ACTIVE_LOG, NEXT_LOG = f"{ACTIVE:020d}.log", f"{6:020d}.log"


def check(
    root: Path, appended: Sequence[bytes | ReferenceBatch], rolled: Sequence[ReferenceBatch] = ()
) -> None:
    partition = make_partition(root, {0: [keyed(0, "ab")], ACTIVE: [AS_LEFT]})
    with log_of(partition, ACTIVE).open("ab") as log:
        log.writelines(raw if isinstance(raw, bytes) else encode(raw) for raw in appended)
    if rolled:
        write_segment(partition, 6, rolled)
    check_partition(partition)


def check_partition(partition: Path) -> None:
    active = FileMark(ACTIVE_LOG, len(AS_LEFT), "0" * 16)
    before = LogBefore(None, (FileMark(f"{0:020d}.log", 1, "0" * 16), active), END, None, None)
    check_appended(list_partition(str(partition), "orders", 0), before)


def test_nothing_was_appended(tmp_path: Path) -> None:
    check(tmp_path, [])


def test_all_that_was_appended_is_there(tmp_path: Path) -> None:
    check(tmp_path, [keyed(4, "e"), keyed(5, "f")], [keyed(6, "gh")])


@pytest.mark.parametrize("magic", [0, 1])
def test_of_older_formats_too(tmp_path: Path, magic: int) -> None:
    """A compressed message has the offset of its last one: the first is read from inside."""
    records = [Record(at, 5 if magic else -1, b"k", b"v") for at in (4, 5)]
    check(tmp_path, [encode_message_set(magic, records, Codec.GZIP)], [keyed(6, "g")])


@pytest.mark.parametrize(
    ("appended", "rolled", "seen"),
    [
        ([keyed(5, "f")], [], f"{ACTIVE_LOG}, written after the run: missing: offset 4"),
        ([keyed(4, "e")], [keyed(6, "g")], f"{NEXT_LOG}, written after the run: missing: offset 5"),
        (
            [keyed(4, "ef")],
            [keyed(8, "g")],
            f"{NEXT_LOG}.*missing: offsets 6 to 7",
        ),
        ([batch(record(4, b"e"), last_offset=5)], [], "missing: some of offsets 4 to 5"),
        ([batch(record(5, b"f"), base_offset=4)], [], "missing: some of offsets 4 to 5"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path,
    appended: list[ReferenceBatch],
    rolled: list[ReferenceBatch],
    seen: str,
) -> None:
    with pytest.raises(ChangedSinceError, match=f"cleaned or deleted since: .*{seen}"):
        check(tmp_path, appended, rolled)


def test_a_batch_with_a_delete_horizon_was_cleaned(tmp_path: Path) -> None:
    """All of its records are there, but of a segment that a cleaning went over."""
    with pytest.raises(ChangedSinceError, match="the batch at offset 4 has a delete horizon"):
        check(tmp_path, [batch(record(4, b"e"), attributes=HORIZON)])


def test_a_torn_end_is_left_to_the_recovery(tmp_path: Path) -> None:
    check(tmp_path, [keyed(4, "e"), encode(keyed(5, "f"))[:-1]])


def test_a_torn_end_of_a_segment_that_others_follow_is_damage(tmp_path: Path) -> None:
    partition = make_partition(tmp_path, {0: [keyed(0, "ab")], ACTIVE: [AS_LEFT, keyed(4, "ef")]})
    write_segment(partition, 6, [keyed(6, "g")])
    torn = log_of(partition, ACTIVE)
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match=ACTIVE_LOG):
        check_partition(partition)


# the states that a run takes a log through, each recognised by its files alone


def log_mark(base_offset: int, checksum: str, size_bytes: int = 100) -> FileMark:
    return FileMark(f"{base_offset:020d}.log", size_bytes, checksum)


A, B, C, MERGED = log_mark(0, "a"), log_mark(10, "b"), log_mark(20, "c"), log_mark(0, "ab", 150)
A_INDEX = FileMark(f"{0:020d}.index", 8, "i")
BEFORE = LogBefore(None, (A, B, C), 30, None, None)
CLEANED = KeptStep(1, originals=(A, A_INDEX, B), put=(MERGED,), cleaned_to=20)
DELETED = KeptStep(2, originals=(MERGED,), put=(), cleaned_to=20, deleted_up_to=20)
STEPS = (CLEANED, DELETED)


def by_name(*marks: FileMark) -> dict[str, FileMark]:
    return {mark.name: mark for mark in marks}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [((), (A, B, C)), ((CLEANED,), (MERGED, C)), (STEPS, (C,))],
    ids=["none", "a swap", "and retention"],
)
def test_what_steps_leave(steps: tuple[KeptStep, ...], expected: tuple[FileMark, ...]) -> None:
    assert left_by(BEFORE, steps) == by_name(*expected)


@pytest.mark.parametrize(
    ("found", "done"),
    [
        ((A, B, C), 0),
        ((MERGED, C), 1),
        ((C,), 2),
        ((MERGED, B, C), 1),  # a swap that recovery settled has left its last source
        ((MERGED, B), None),
        ((A, C), None),
        ((MERGED, log_mark(20, "d")), None),
        ((log_mark(0, "x", 150), C), None),
        ((MERGED, C, log_mark(30, "e")), None),
        ((), None),
    ],
)
def test_how_many_steps_are_in_a_log(found: tuple[FileMark, ...], done: int | None) -> None:
    assert steps_done(by_name(*found), BEFORE, STEPS, lambda mark: mark) == done


def test_a_log_may_be_recognised_by_sizes_alone() -> None:
    sizes = {mark.name: mark.size_bytes for mark in (log_mark(0, "other bytes", 150), C)}
    assert steps_done(sizes, BEFORE, STEPS, lambda mark: mark.size_bytes) == 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((C,), "which the run left, is gone: deleted or cleaned again"),
        ((MERGED, B, C), "which the run removed, is there again"),
        ((MERGED, log_mark(15, "x"), C), "which the run did not leave there"),
        ((log_mark(0, "ab", 151), C), "has 151 bytes, the run left 150"),
        ((log_mark(0, "xx", 150), C), "has other bytes than those that the run left"),
    ],
)
def test_the_first_difference_is_put_into_words(found: tuple[FileMark, ...], said: str) -> None:
    left = left_by(BEFORE, (CLEANED,))
    assert said in difference(by_name(*found), left, {A.name, B.name})
