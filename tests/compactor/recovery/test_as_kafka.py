"""`recover --as-kafka`: where we leave a log to a person, it does what a broker does.

What Kafka leaves, byte by byte, tests/engine/test_recoveries.py holds. Here: each difference of
docs/differences.md that has to do with a recovery is off.
"""

import errno
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
from tests.compactor.recovery.test_unclean_shutdown import cuts
from tests.support.files.memory import in_memory
from tests.support.files.watched import Operation, WatchedFiles
from tests.support.legacy_writer import encode_message_set
from tests.support.local_command import run_command
from tests.support.made_log import NOW_MS, files_of, keyed, log_of, make_partition
from tests.support.reference_batch import encode

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
    ("damage", "left"),
    [
        (damaged_before_the_end, {0: encode(FIRST)}),
        (torn_below_the_recovery_point, {0: encode(FIRST) + encode(SECOND), 3: b""}),
        (out_of_order, {0: encode(FIRST) + encode(SECOND), 3: b""}),
        (ends_below_its_start, {9: b""}),
        (cleanly_ends_below_its_start, {9: b""}),
        (
            wants_splitting,
            {0: encode(FIRST) + encode(SECOND), 3: encode(LAST), 3 + 2**31: encode(FAR)},
        ),
    ],
)
def test_what_we_set_aside_a_broker_cuts_off(
    partition: Path, damage: Callable[[Path], None], left: dict[int, bytes]
) -> None:
    """L-11.1, L-11.3, L-25.3, L-25.6, L-25.7: with an index entry for each batch."""
    damage(partition)
    before = logs_of(partition)
    if not (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).exists():
        told = recover(partition, as_kafka=False, settings=EVERY_BATCH)
        assert told.problem is not None
        assert logs_of(partition) == before
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
    for left in cuts(
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
