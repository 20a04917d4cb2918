"""Offsets that are missing behind a segment which no cleaning has gone over."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from compactor.log_checks.findings import Finding
from compactor.outcome.round_report import LogStatus
from compactor.reason_codes import ReasonCode
from compactor.recovery.log_dir_recovery import recover_log_dir
from compactor.settings.config import load_config
from compactor.verification.verify import verify
from storage.codecs.compression import Codec
from storage.file_names import LOG, SNAPSHOT, TXN_INDEX, file_name
from storage.formats import checkpoint, producer_snapshot, txn_index
from storage.formats.clean_shutdown import CLEAN_SHUTDOWN
from tests.compactor.plan_logs import plan_log_dirs
from tests.golden import corpora
from tests.support.local_command import run_command, use_local_rounds
from tests.support.local_round import NoProgress
from tests.support.made_log import batch, files_of, keyed, make_partition, packed, record
from tests.support.reference_batch import ReferenceBatch

ORDERS = ("orders", 0)


def missed(log_dir: Path) -> list[Finding]:
    found = verify([str(log_dir)], (), NoProgress()).findings
    return [finding for finding in found if "missing behind" in finding.problem]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_segment_that_was_deleted_between_others_is_missed(tmp_path: Path, codec: Codec) -> None:
    log_dir = tmp_path / "logs"
    orders = make_partition(
        log_dir,
        {
            0: [packed(keyed(0, "ab"), codec), packed(keyed(2, "cA"), codec)],
            4: [keyed(4, "de")],
            6: [keyed(6, "fg")],
            8: [keyed(8, "h")],
        },
    )
    assert missed(log_dir) == []
    for path in orders.glob(f"{file_name(4, '')}*"):
        path.unlink()
    [finding] = missed(log_dir)
    assert finding.path == str(orders / file_name(0, LOG))
    assert finding.position == (orders / file_name(0, LOG)).stat().st_size
    assert finding.problem == (
        "missing behind this segment: offsets 4 to 5, and no cleaning has removed that: it "
        "would not have left both offset 0 and offset 3, which have the same key"
    )


def renamed(orders: Path, *base_offsets: int) -> None:
    for base_offset in base_offsets:
        for path in orders.glob(f"{file_name(base_offset, '')}*"):
            path.rename(f"{path}.deleted")


def test_a_segment_that_is_there_whole_as_deleted_is_renamed_back(tmp_path: Path) -> None:
    """Its records fill the gap, so no replica is needed. The command makes the log sound."""
    log_dir = tmp_path / "logs"
    batches = {0: [keyed(0, "aba")], 3: [keyed(3, "cd")], 5: [keyed(5, "ef")], 7: [keyed(7, "g")]}
    orders = make_partition(log_dir, batches)
    for path in orders.glob(f"*{SNAPSHOT}"):  # they are made up
        path.unlink()
    renamed(orders, 3, 5)
    [finding] = missed(log_dir)
    names = f"{file_name(3, LOG)}.deleted, {file_name(5, LOG)}.deleted"
    assert finding.problem.endswith(f"same key; all of it is in {names}, to be renamed back")
    ended = run_command("verify", log_dir)
    assert "Next: rename the files below back before a broker starts" in ended.out
    assert "replica" not in ended.out
    for line in ended.out.splitlines():
        if line.startswith("  mv "):
            subprocess.run(shlex.split(line), check=True)
    assert missed(log_dir) == []
    assert "replica" not in run_command("verify", log_dir).out
    before = sorted(path.name for path in orders.glob("*.log"))
    assert before == [file_name(base_offset, LOG) for base_offset in batches]


@pytest.mark.parametrize(
    "deleted",
    [
        {3: [keyed(3, "cd")]},  # 5 and 6 are missing still
        {5: [keyed(5, "ef")]},
        {3: [keyed(3, "cd")], 5: [keyed(5, "e")]},
        {3: [keyed(3, "cd")], 5: [keyed(5, "efg")]},
        {3: [keyed(3, "cd.e"), keyed(6, "f")], 5: []},
        {3: [keyed(3, "c"), keyed(5, "ef")]},
        {3: [keyed(4, "def")]},
        {3: []},
    ],
)
def test_what_does_not_fill_the_gap_is_not_renamed(
    tmp_path: Path, deleted: dict[int, list[ReferenceBatch]]
) -> None:
    log_dir = tmp_path / "logs"
    last = [keyed(7, "gh")]
    orders = make_partition(log_dir, {0: [keyed(0, "aba")], 7: last, 9: [keyed(9, "z")]})
    other = make_partition(tmp_path / "other", deleted | {7: last})
    for base_offset in deleted:
        path = other / file_name(base_offset, LOG)
        path.rename(orders / f"{path.name}.deleted")
    [finding] = missed(log_dir)
    assert finding.problem.endswith("which have the same key")
    ended = run_command("verify", log_dir)
    assert ("fetch such a log again" in ended.out, " mv " in ended.out) == (True, False)


@pytest.mark.parametrize("at", [-1, 30, 61])
def test_a_damaged_deleted_segment_is_not_renamed(tmp_path: Path, at: int) -> None:
    log_dir = tmp_path / "logs"
    batches = {0: [keyed(0, "aba")], 3: [keyed(3, "cdef")], 7: [keyed(7, "g")], 8: [keyed(8, "z")]}
    orders = make_partition(log_dir, batches)
    renamed(orders, 3)
    path = orders / f"{file_name(3, LOG)}.deleted"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    [finding] = missed(log_dir)
    assert finding.problem.endswith("which have the same key")


@pytest.mark.parametrize(
    ("first", "is_missed"),
    [
        ([keyed(0, "aba")], True),
        ([keyed(0, "abc")], False),  # a cleaning may have taken the others
        ([keyed(0, "ab"), keyed(3, "a")], False),  # it has, or another's: 2 is missing, too
        ([batch(record(0, b"a"), record(2, b"a"))], False),  # likewise, of a batch
        ([keyed(1, "aab")], False),  # likewise, before the first batch
        ([keyed(0, "a.b")], False),  # brokers take nothing without a key
    ],
)
def test_what_a_cleaning_may_leave_is_no_finding(
    tmp_path: Path, first: list[ReferenceBatch], is_missed: bool
) -> None:
    """Also without a checkpoint: it was lost, or the cleaning was cut short."""
    make_partition(tmp_path / "logs", {0: first, 6: [keyed(6, "ab")], 8: [keyed(8, "z")]})
    assert bool(missed(tmp_path / "logs")) is is_missed


@pytest.mark.parametrize(
    ("entry", "is_missed"), [(0, True), (1, True), (2, False), (9, False), (10, True)]
)
def test_what_counts_as_clean_is_not_judged(tmp_path: Path, entry: int, is_missed: bool) -> None:
    """Nor is what the log start is above; an entry past the end of the log counts for none."""
    log_dir = tmp_path / "logs"
    make_partition(log_dir, {0: [keyed(0, "xaya")], 6: [keyed(6, "ab")], 8: [keyed(8, "z")]})
    for name in (checkpoint.CLEANER_OFFSET, checkpoint.LOG_START):
        path = str(log_dir / name)
        if name == checkpoint.CLEANER_OFFSET or entry < 10:
            checkpoint.write(path, {ORDERS: entry})
            assert bool(missed(log_dir)) is is_missed, name
        checkpoint.write(path, {})


@pytest.mark.parametrize("is_deleted", [False, True], ids=["gone", "deleted"])
def test_a_run_sets_aside_what_verify_proves(tmp_path: Path, is_deleted: bool) -> None:
    log_dir = tmp_path / "logs"
    segments = {0: [keyed(0, "aba")], 3: [keyed(3, "abc")], 6: [keyed(6, "ab")], 8: [keyed(8, "z")]}
    orders = make_partition(log_dir, segments)
    for path in list(orders.glob(f"{file_name(3, '')}*")):
        path.rename(f"{path}.deleted" if is_deleted else tmp_path / path.name)
    before = {path.name: path.read_bytes() for path in orders.iterdir()}
    [finding] = missed(log_dir)
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    config = load_config(settings=settings)
    plan = plan_log_dirs([str(log_dir)], config, as_of_ms=10_000)
    [report] = plan.not_cleaned
    assert (report.status, report.reason_code) == (LogStatus.SET_ASIDE, ReasonCode.DAMAGED)
    assert report.reason == str(finding)
    [*recovered] = recover_log_dir(str(log_dir)).logs
    assert [log.reason_code for log in recovered] == [ReasonCode.DAMAGED] * is_deleted
    assert {path.name: path.read_bytes() for path in orders.iterdir()} == before


@pytest.mark.parametrize("of_file", [checkpoint.RECOVERY_POINT, checkpoint.REPLICATION])
@pytest.mark.parametrize("is_clean", [True, False])
def test_what_may_be_the_end_of_a_log_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_file: str, is_clean: bool
) -> None:
    """The last segment was renamed, and a checkpoint says that the log went further."""
    use_local_rounds(monkeypatch, tmp_path / "work")
    log_dir = tmp_path / "logs"
    orders = make_partition(log_dir, {0: [keyed(0, "ab")], 2: [keyed(2, "ab")], 4: [keyed(4, "z")]})
    renamed(orders, 4)
    checkpoint.write(str(log_dir / checkpoint.REPLICATION), {ORDERS: 4})
    checkpoint.write(str(log_dir / of_file), {ORDERS: 5})
    if not is_clean:
        (log_dir / CLEAN_SHUTDOWN).unlink()
    before = files_of(orders)
    ended = run_command("recover", log_dir)
    assert (ended.code, "tart the broker" in ended.out) == (4, False)
    asked = ("--set", "cleanup.policy=compact", "--include", "orders", "--any-clock")
    ended = run_command("run", log_dir, *asked, "--recover-first")
    assert (ended.code, "tart the broker" in ended.out) == (4, False), ended
    assert files_of(orders) == before
    checkpoint.write(str(log_dir / of_file), {ORDERS: 4})  # as after `log truncate`
    run_command("recover", log_dir)
    assert not [*orders.glob("*.deleted")]


def test_what_a_cleaning_has_replaced_is_removed(tmp_path: Path) -> None:
    """It fills a gap, too, but the log before it holds no key twice."""
    log_dir = tmp_path / "logs"
    segments = {0: [keyed(0, "abc")], 6: [keyed(6, "ab")], 8: [keyed(8, "z")]}
    orders = make_partition(log_dir, segments)
    (orders / f"{file_name(3, LOG)}.deleted").write_bytes(b"replaced")
    recover_log_dir(str(log_dir))
    assert not list(orders.glob("*.deleted"))


def test_records_of_transactions_prove_nothing(tmp_path: Path) -> None:
    """An aborted one stays out of the map: what was before it stays."""
    of_one = {"attributes": 0x10, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    transactional = batch(record(1, b"a"), **of_one)
    log_dir = tmp_path / "logs"
    make_partition(log_dir, {0: [keyed(0, "a"), transactional], 6: [keyed(6, "b")]})
    assert missed(log_dir) == []


def test_what_stands_further_before_proves_it_too(tmp_path: Path) -> None:
    segments = {0: [keyed(0, "ab")], 2: [keyed(2, "ca")], 4: [keyed(4, "de")], 9: [keyed(9, "z")]}
    make_partition(tmp_path / "logs", segments)
    [finding] = missed(tmp_path / "logs")
    assert "missing behind this segment: offsets 6 to 8" in finding.problem
    assert "both offset 0 and offset 3, " in finding.problem


def test_a_gap_that_is_small_against_the_segment_before_is_a_replicas(tmp_path: Path) -> None:
    make_partition(tmp_path / "logs", {0: [keyed(0, "abababa")], 10: [keyed(10, "z")]})
    assert missed(tmp_path / "logs") == []
    make_partition(tmp_path / "logs", {0: [keyed(0, "ababab")], 10: [keyed(10, "z")]}, "orders-1")
    assert len(missed(tmp_path / "logs")) == 1


@pytest.mark.parametrize(
    ("last_offset", "is_missed"),
    [
        (3, False),  # the replica had no more when it went on at 8
        (7, True),  # it had what is missing
        (1, True),  # what was written behind 1 came of a producer that is not idempotent
        (None, True),
    ],
)
def test_what_the_leader_had_cleaned_before_a_replica_came_to_it_is_not_missing(
    tmp_path: Path, last_offset: int | None, is_missed: bool
) -> None:
    """A replica begins a segment at the first batch that it fetches for it."""
    orders = make_partition(tmp_path / "logs", {0: [keyed(0, "abab")], 8: [keyed(8, "ab")]})
    entry = producer_snapshot.ProducerEntry(7, 0, 3, last_offset, 3, 1000, None, None)
    of_state = [] if last_offset is None else [entry]
    producer_snapshot.write(str(orders / file_name(8, SNAPSHOT)), of_state)
    assert bool(missed(tmp_path / "logs")) is is_missed


def test_where_a_segment_of_a_replica_was_split_nothing_is_missing(tmp_path: Path) -> None:
    """With both a's copied before the leader's cleaning. Source: Kafka, LogLoader's split."""
    far = 2**31 + 5
    segments = {0: [keyed(0, "aba")], far: [keyed(far, "b")], far + 1: [keyed(far + 1, "z")]}
    make_partition(tmp_path / "logs", segments)
    assert missed(tmp_path / "logs") == []


@pytest.mark.parametrize(
    ("first", "last", "is_missed"), [(3, 8, False), (1, 9, False), (8, 9, True), (3, 7, True)]
)
def test_an_aborted_transaction_may_have_been_there(
    tmp_path: Path, first: int, last: int, is_missed: bool
) -> None:
    """Its records go up to the end of a segment, also above a full map: both a's are there."""
    segments = {0: [keyed(0, "aba")], 8: [keyed(8, "yz")], 10: [keyed(10, "z")]}
    orders = make_partition(tmp_path / "logs", segments)
    entry = txn_index.encode(txn_index.AbortedTxn(7, first, last, first))
    (orders / file_name(8, TXN_INDEX)).write_bytes(entry)
    assert bool(missed(tmp_path / "logs")) is is_missed


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param({0: [keyed(0, "aba")], 3: [], 9: [keyed(9, "z")]}, id="all of one was taken"),
        pytest.param({5: [keyed(5, "aba")], 8: [keyed(8, "z")]}, id="retention took the first"),
    ],
)
def test_what_brokers_leave_besides_is_no_finding(
    tmp_path: Path, segments: dict[int, list[ReferenceBatch]]
) -> None:
    make_partition(tmp_path / "logs", segments)
    assert missed(tmp_path / "logs") == []


def test_logs_of_kafkas_and_what_its_cleaner_made_of_them_miss_nothing(tmp_path: Path) -> None:
    """Whatever their checkpoints say: these may be lost."""
    fleet = corpora.extracted()
    for side in (fleet.before, fleet.after):
        log_dir = tmp_path / side.name
        shutil.copytree(side, log_dir)
        assert missed(log_dir) == []
        (log_dir / checkpoint.CLEANER_OFFSET).unlink()
        assert missed(log_dir) == []
