"""A log directory is settled: what is looked at, what is done, and what is left alone."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compactor import api
from compactor.recovery.log_dir_recovery import LoadRules, LogRecovery, recover_log_dir
from compactor.settings.config import load_config
from storage.file_names import INDEX, LOG, SWAP, TIME_INDEX, file_name
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.formats.record import Record
from tests.support.files.cuts import cuts
from tests.support.files.memory import in_memory
from tests.support.files.watched import Operation, WatchedFiles
from tests.support.legacy_writer import encode_message_set
from tests.support.local_command import run_command
from tests.support.made_log import NOW_MS, files_of, keyed, log_of, make_partition, write_segment
from tests.support.reference_batch import encode


def log_dir(root: Path) -> Path:
    """Segments 0, 4 and 9, and 20, which is active."""
    segments = {0: [keyed(0, "abab")], 4: [keyed(4, "a")], 9: [keyed(9, "b")], 20: []}
    return make_partition(root / "logs", segments).parent


def swap_in(partition: Path, base_offset: int, keys: str, suffix: str = ".swap") -> None:
    """A cleaned segment of one batch, as it stands before its sources go."""
    beside = partition.parent.parent / "cleaned"
    beside.mkdir()
    write_segment(beside, base_offset, [keyed(base_offset, keys)] if keys else [], 0)
    for kind in (LOG, INDEX, TIME_INDEX):
        name = file_name(base_offset, kind)
        os.replace(beside / name, partition / f"{name}{suffix}")


def only(root: Path) -> LogRecovery:
    [log] = recover_log_dir(str(root)).logs
    return log


def test_a_complete_swap_is_finished(tmp_path: Path) -> None:
    """C-15.6: its range ends with its last batch, so segment 9 is not of its sources."""
    root = log_dir(tmp_path)
    partition = root / "orders-0"
    before = files_of(partition)
    swap_in(partition, 0, "abxyz")  # offsets 0 to 4
    swapped = {n.removesuffix(".swap"): d for n, d in files_of(partition).items() if "swap" in n}
    found = only(root)
    expected = {n: d for n, d in before.items() if n[:20] not in (f"{0:020}", f"{4:020}")}
    assert files_of(partition) == expected | swapped
    assert found.finished == tuple(sorted(swapped))
    assert found.undone == ()
    assert found.removed == tuple(sorted(before.keys() - expected.keys()))
    assert found.problem is None
    assert recover_log_dir(str(root)).logs == ()


@pytest.mark.parametrize("lost", [(INDEX,), (TIME_INDEX,), (INDEX, TIME_INDEX)])
def test_no_index_of_a_source_stays_beside_a_swap_that_lost_its_own(
    tmp_path: Path, lost: tuple[str, ...]
) -> None:
    """Kafka syncs no name behind its own renames. It takes an index for what it finds in it, and a
    missing one it makes anew."""
    root = log_dir(tmp_path)
    partition = root / "orders-0"
    for kind in (INDEX, TIME_INDEX):  # of the source, and no broker would see that they are
        (partition / file_name(0, kind)).write_bytes(b"of the source")
    swap_in(partition, 0, "abxyz")
    for kind in lost:
        (partition / f"{file_name(0, kind)}.swap").unlink()
    swapped = (partition / f"{file_name(0, LOG)}.swap").read_bytes()
    assert only(root).problem is None
    after = files_of(partition)
    assert after[file_name(0, LOG)] == swapped
    kinds = {INDEX, TIME_INDEX} - {*lost}
    assert {n for n in after if n[:20] == f"{0:020}"} == {
        file_name(0, kind) for kind in (LOG, *kinds)
    }
    assert file_name(4, LOG) not in after and file_name(9, LOG) in after
    assert recover_log_dir(str(root)).logs == ()


def assert_set_aside(root: Path, told: str) -> None:
    before = files_of(root / "orders-0")
    found = only(root)
    assert found.problem is not None and told in found.problem
    assert (found.finished, found.undone, found.removed) == ((), (), ())
    assert files_of(root / "orders-0") == before


def test_a_torn_swap_is_not_swapped_in(tmp_path: Path) -> None:
    root = log_dir(tmp_path)
    partition = root / "orders-0"
    swap_in(partition, 0, "ab")
    path = partition / f"{file_name(0, LOG)}.swap"
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        assert_set_aside(root, f"{path}, byte 0: ")


def test_an_index_that_is_not_of_the_log_in_place_is_not_put_beside_it(tmp_path: Path) -> None:
    """Readers that seek would skip records, silently; Kafka does not look."""
    root = log_dir(tmp_path)
    path = root / "orders-0" / f"{file_name(4, INDEX)}.swap"
    path.write_bytes(bytes.fromhex("00000003 00000111"))
    assert_set_aside(root, "does not lead to that batch of the log")


def lost_its_bytes(partition: Path) -> None:
    """Its index knows of batches: the log was written, and is gone."""
    swap_in(partition, 0, "ab")
    (partition / f"{file_name(0, LOG)}.swap").write_bytes(b"")
    (partition / f"{file_name(0, INDEX)}.swap").write_bytes(bytes.fromhex("00000000 00000000"))


def has_file(name: str) -> Callable[[Path], None]:
    def put(partition: Path) -> None:
        swap_in(partition, 0, "ab")
        (partition / name).write_bytes(b"")

    return put


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lost_its_bytes, ".index.swap, byte 0: has entries, but its .log.swap has no batch"),
        # F-2.5
        (has_file("backup.log.swap"), "backup.log.swap: a broker cannot load a log that has"),
        # broker 4.3.1 finds offset 9 in both names
        (has_file("9.log"), "9.log: no broker writes a file of this name"),
        (has_file("000000000000000000009.log"), "09.log: no broker writes a file of this name"),
    ],
)
def test_what_is_wrong_beside_a_swap_is_reported_and_nothing_done(
    tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    root = log_dir(tmp_path)
    damage(root / "orders-0")
    assert_set_aside(root, told)


def test_one_log_that_cannot_be_settled_stops_no_other(tmp_path: Path) -> None:
    root = log_dir(tmp_path)
    make_partition(root, {0: [keyed(0, "a")]}, "other-0")
    for name in ("orders-0", "other-0"):
        (root / name / f"{file_name(0, LOG)}.deleted").write_bytes(b"")

    def fail(operation: Operation) -> None:
        if operation.name == "remove" and "orders-0" in operation.paths[0]:
            raise PermissionError(1, "Operation not permitted", *operation.paths)

    files = WatchedFiles(LOCAL, fail)
    [first, second] = recover_log_dir(str(root), files=files).logs
    assert first.problem == (
        f"{root}/orders-0/{file_name(0, LOG)}.deleted: Operation not permitted"
    )
    assert second.removed == (f"{file_name(0, LOG)}.deleted",)


@pytest.mark.parametrize(
    "name",
    [
        "orders-1.0123456789abcdef0123456789abcdef-delete",
        "orders-1.0123456789abcdef0123456789abcdef-stray",
        "orders-1.0123456789abcdef0123456789abcdef-future",
        "__cluster_metadata-0",
        "remote-log-index-cache",
        "not a partition",
    ],
)
def test_what_is_no_partition_is_left_alone(tmp_path: Path, name: str) -> None:
    """F-1.3: a broker deletes, completes or keeps these itself."""
    root = log_dir(tmp_path)
    partition = make_partition(tmp_path / "other", {0: [keyed(0, "a")]})
    swap_in(partition, 0, "b")
    for left in (".log.deleted", ".log.cleaned", ".log.compactor-1-2"):
        (partition / f"{5:020}{left}").write_bytes(b"left")
    partition.rename(root / name)
    before = files_of(root / name)
    found = recover_log_dir(str(root))
    assert (found.partitions, found.logs) == (1, ())
    assert files_of(root / name) == before


def test_half_a_checkpoint_of_the_log_directory_goes(tmp_path: Path) -> None:
    """F-13.3: what was being written when the process was killed."""
    root = log_dir(tmp_path)
    (root / "cleaner-offset-checkpoint.tmp").write_text("0\n1\n")
    (root / "somebody.tmp").write_text("")
    assert recover_log_dir(str(root)).removed == ("cleaner-offset-checkpoint.tmp",)
    assert sorted(p.name for p in root.iterdir()) == [
        ".kafka_cleanshutdown",
        "orders-0",
        "somebody.tmp",
    ]


def left_over(partition: Path) -> None:
    """Files that settling removes."""
    for left in (f"{4:020}.log.deleted", f"{7:020}.index", f"{4:020}.log.cleaned"):
        (partition / left).write_bytes(b"")


def test_a_log_whose_end_is_torn_after_a_clean_shutdown_is_left_as_it_is(tmp_path: Path) -> None:
    """It is set aside: nothing of it is settled either, which may help whoever repairs it."""
    root = log_dir(tmp_path)
    left_over(root / "orders-0")
    with (root / "orders-0" / file_name(20, LOG)).open("ab") as active:
        active.write(b"torn")
    assert_set_aside(root, f"{file_name(20, LOG)}, byte 0: ")


@pytest.mark.parametrize("is_clean", [True, False])
def test_of_a_log_without_records_the_other_files_stay(tmp_path: Path, is_clean: bool) -> None:
    """Also where a run settles, which recovers nothing else."""
    root = log_dir(tmp_path)
    left_over(root / "orders-0")
    for path in (root / "orders-0").glob("*.log"):
        path.unlink()
    checkpoint.write(str(root / checkpoint.REPLICATION), {("orders", 0): 21})
    if not is_clean:
        (root / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    assert_set_aside(root, "its .log files are gone: ")


FIRST, SECOND, LAST = keyed(0, "ab"), keyed(2, "a"), keyed(3, "ab")
FAR = keyed(3 + 2**31, "ab")
RULES = LoadRules(load_config(), NOW_MS, as_kafka=True)
KAFKAS_EMPTY_SNAPSHOT = "000148674bc700000000"  # from a file that Kafka 4.3.1 wrote
EVERY_BATCH = {"index.interval.bytes": "0"}  # gets an entry in the index


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Segments 0 (two batches) and 3 (one), of a broker that was killed."""
    partition = make_partition(tmp_path / "logs", {0: [FIRST, SECOND], 3: [LAST]})
    (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    return partition


def recover(
    partition: Path, as_kafka: bool = True, settings: dict[str, str] | None = None
) -> LogRecovery:
    config = load_config(None, None, settings or {})
    found = recover_log_dir(str(partition.parent), LoadRules(config, NOW_MS, as_kafka))
    return found.logs[0]


def logs_of(partition: Path) -> dict[int, bytes]:
    return {int(path.stem): path.read_bytes() for path in sorted(partition.glob(f"*{LOG}"))}


def damaged_at_its_beginning(partition: Path) -> None:
    data = bytearray(encode(FIRST) + encode(SECOND))
    data[70] ^= 1
    log_of(partition, 0).write_bytes(data)


def damaged_before_the_end(partition: Path) -> None:
    data = bytearray(encode(FIRST) + encode(SECOND))
    data[-1] ^= 1
    log_of(partition, 0).write_bytes(data)


def torn_below_the_recovery_point(partition: Path) -> None:
    log_of(partition, 3).write_bytes(encode(LAST)[:-1])
    checkpoint.write(str(partition.parent / checkpoint.RECOVERY_POINT), {("orders", 0): 4})


def out_of_order(partition: Path) -> None:
    log_of(partition, 3).write_bytes(encode(LAST) + encode(keyed(5, "a")) + encode(LAST))


def ends_below_its_start(partition: Path) -> None:
    checkpoint.write(str(partition.parent / checkpoint.LOG_START), {("orders", 0): 9})


def cleanly_ends_below_its_start(partition: Path) -> None:
    ends_below_its_start(partition)
    clean_shutdown.write(str(partition.parent))


def wants_splitting(partition: Path) -> None:
    log_of(partition, 3).write_bytes(encode(LAST) + encode(FAR))


def torn_swap(partition: Path) -> None:
    (partition / (file_name(0, LOG) + SWAP)).write_bytes(encode(FIRST) + encode(SECOND)[:-1])
    for kind in (INDEX, TIME_INDEX):
        (partition / (file_name(0, kind) + SWAP)).write_bytes(b"")


def empty_swap(partition: Path) -> None:
    for kind in (LOG, INDEX, TIME_INDEX):
        (partition / (file_name(0, kind) + SWAP)).write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "problem", "left"),
    [
        (
            damaged_at_its_beginning,
            f"{file_name(0, LOG)}, byte 0: .*CRC.* {file_name(0, LOG)} has a sound batch at byte "
            f"{len(encode(FIRST))}, behind it.* would lose that",
            {0: b""},
        ),
        (
            damaged_before_the_end,
            f"{file_name(0, LOG)}, byte {len(encode(FIRST))}: .*CRC.* {file_name(3, LOG)} has a "
            "sound batch at byte 0, behind it",
            {0: encode(FIRST)},
        ),
        (
            torn_below_the_recovery_point,
            f"{file_name(3, LOG)}, byte 0: .*records from offset 3 up to the recovery point 4 were "
            "on disk: no crash can have torn them",
            {0: encode(FIRST) + encode(SECOND), 3: b""},
        ),
        (
            out_of_order,
            f"{file_name(3, LOG)}, byte .*base offset 3, expected 6 or more",
            {0: encode(FIRST) + encode(SECOND), 3: b""},
        ),
        (ends_below_its_start, "ends at offset 5, before its log start offset 9", {9: b""}),
        (cleanly_ends_below_its_start, None, {9: b""}),
        (
            wants_splitting,
            f"{file_name(3, LOG)}, byte {len(encode(LAST))}: .*offset {4 + 2**31} does not fit",
            {0: encode(FIRST) + encode(SECOND), 3: encode(LAST), 3 + 2**31: encode(FAR)},
        ),
    ],
)
def test_what_we_set_aside_a_broker_cuts_off(
    partition: Path, damage: Callable[[Path], None], problem: str | None, left: dict[int, bytes]
) -> None:
    """L-11.1, L-11.3, L-25.3, L-25.6, L-25.7, C-16.6, docs/differences.md: with an index entry for
    each batch. problem: what we say of it, a pattern; None where we do not look, after a clean
    shutdown."""
    damage(partition)
    before = files_of(partition)
    if problem is not None:
        told = recover(partition, as_kafka=False, settings=EVERY_BATCH)
        assert told.problem is not None
        assert re.search(problem, told.problem)
        assert files_of(partition) == before
    log = recover(partition, settings=EVERY_BATCH)
    assert log.problem is None
    assert log.truncated is not None or log.removed
    assert logs_of(partition) == left


def test_a_swap_is_finished_whatever_is_in_it(partition: Path) -> None:
    """C-15.9: the sources are lost, in the first case up to what is torn."""
    torn_swap(partition)
    assert recover(partition, as_kafka=False).problem is not None
    log = recover(partition)
    assert (log.problem, log.truncated) == (None, None)
    assert logs_of(partition) == {0: encode(FIRST)}
    empty_swap(partition)
    assert file_name(0, LOG) in recover(partition).finished
    assert logs_of(partition) == {0: b""}


def test_a_torn_end_of_a_clean_shutdown_stays(partition: Path) -> None:
    clean_shutdown.write(str(partition.parent))
    torn = encode(LAST)[:-1]
    log_of(partition, 3).write_bytes(torn)
    assert recover(partition, as_kafka=False).problem is not None
    assert recover(partition).problem is None
    assert logs_of(partition)[3] == torn
    assert (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).exists()


def test_an_index_that_outgrows_its_file_is_told(partition: Path) -> None:
    """C-13.7: a broker would not start."""
    log_of(partition, 0).write_bytes(b"".join(encode(keyed(o, "a")) for o in range(3)))
    settings = {"index.interval.bytes": "0", "segment.index.bytes": "4"}
    log = recover(partition, settings=settings)
    assert log.problem is not None and log.problem.startswith("no broker would start with it: ")
    assert recover(partition, as_kafka=False, settings=settings).problem is None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_snapshot_before_legacy_messages_stays(magic: int, tmp_path: Path) -> None:
    """L-11.1: the end of the producers' state goes up with batches of format v2 only.

    Kafka 4.3.1 writes a snapshot there, and one at the end of the log; both list no producer.
    """
    partition = make_partition(tmp_path / "logs", {0: []})
    (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    messages = encode_message_set(magic, [Record(2, 120, b"a", b"v"), Record(3, 130, b"b", b"v")])
    log_of(partition, 0).write_bytes(encode(FIRST) + messages)
    assert recover(partition).problem is None
    left = {path.name: path.read_bytes() for path in partition.glob("*.snapshot")}
    empty = bytes.fromhex(KAFKAS_EMPTY_SNAPSHOT)
    assert left == {"00000000000000000002.snapshot": empty, "00000000000000000004.snapshot": empty}


def test_it_is_an_option_of_recover(partition: Path) -> None:
    damaged_before_the_end(partition)
    before = files_of(partition)
    done = run_command("recover", partition.parent)
    assert done.code != 0
    assert files_of(partition) == before
    done = run_command("recover", partition.parent, "--as-kafka")
    assert done.code == 0
    assert logs_of(partition) == {0: encode(FIRST)}
    assert api.recover([str(partition.parent)], as_kafka=True)[0].logs == ()


def test_a_mark_of_a_clean_shutdown_says_so_of_finished_logs_alone(partition: Path) -> None:
    """L-26.3: a log that is being loaded has room in its indexes, zeros that would be entries."""
    clean_shutdown.write(str(partition.parent), 7)
    whole, mark = in_memory(partition.parent), str(partition.parent / clean_shutdown.CLEAN_SHUTDOWN)
    before = files_of(partition)
    assert recover_log_dir(str(partition.parent), RULES).logs
    after, count = files_of(partition), 0
    assert clean_shutdown.read(str(partition.parent)) == 7
    for left, _ in cuts(
        whole, lambda files: recover_log_dir(str(partition.parent), RULES, files=files)
    ):
        if left.exists(mark):
            names = left.list_names(str(partition))[1]
            found = {name: left.read_bytes(str(partition / name)) for name in names}
            assert found in (before, after)
        count += 1
    assert count > 10


def test_a_log_left_half_done_costs_the_mark_of_a_clean_shutdown(partition: Path) -> None:
    clean_shutdown.write(str(partition.parent))

    def fail(operation: Operation) -> None:
        if operation.name == "truncate" and operation.paths[0].endswith(TIME_INDEX):
            raise OSError(errno.ENOSPC, "No space left on device", operation.paths[0])

    files = WatchedFiles(LOCAL, fail)
    [log] = recover_log_dir(str(partition.parent), RULES, files=files).logs
    assert log.problem is not None and "No space left" in log.problem
    assert not (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).exists()


def test_what_was_to_be_deleted_goes_once_a_swap_is_settled_on_disk(partition: Path) -> None:
    """What takes its place may be in memory only until the directory is synced."""
    for kind in (LOG, INDEX, TIME_INDEX):
        path = partition / file_name(0, kind)
        (partition / (path.name + SWAP)).write_bytes(path.read_bytes())
        path.rename(partition / f"{path.name}.deleted")
    files = WatchedFiles(LOCAL)
    assert recover_log_dir(str(partition.parent), RULES, files=files).logs[0].problem is None
    done = [(each.name, each.paths[0]) for each in files.changes]
    settled = max(i for i, (_, path) in enumerate(done) if path.endswith(SWAP))
    gone = [i for i, (_, path) in enumerate(done) if path.endswith(".deleted")]
    assert len(gone) == 3
    assert ("sync_directory", str(partition)) in done[settled : gone[0]]


def test_what_was_to_be_deleted_stays_where_a_swap_cannot_be_settled(partition: Path) -> None:
    """L-25.2 has no such case: Kafka has removed it before it looks at the swap."""
    path = log_of(partition, 0)
    (partition / (path.name + SWAP)).write_bytes(path.read_bytes())
    path.rename(partition / f"{path.name}.deleted")

    def fail(operation: Operation) -> None:
        if operation.name == "rename" and operation.paths[0].endswith(SWAP):
            raise OSError(errno.EIO, "Input/output error", operation.paths[0])

    files = WatchedFiles(LOCAL, fail)
    [log] = recover_log_dir(str(partition.parent), RULES, files=files).logs
    assert log.problem is not None and "Input/output error" in log.problem
    assert (partition / f"{path.name}.deleted").exists()
    assert recover(partition).problem is None
    assert logs_of(partition) == {0: encode(FIRST) + encode(SECOND), 3: encode(LAST)}
