"""Logs after an unclean shutdown: what a crash tears is cut off, what is sound stays, or is told.

Golden logs, whose indexes Kafka wrote, have to come out as they were when all that can be derived
is taken away. `python -m tests.conformance --only recovery` holds more against Kafka's own loader.
"""

import os
import shutil
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compactor.recovery import log_recovery
from compactor.recovery.log_dir_recovery import LoadRules, LogRecovery, recover_log_dir
from compactor.settings.config import load_config
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown, producer_snapshot
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from storage.log.loading import Rehearsal, rehearsed
from tests.golden import corpora
from tests.support.files.cuts import cuts
from tests.support.files.memory import in_memory
from tests.support.files.watched import WatchedFiles
from tests.support.made_log import (
    ABORT_KEY,
    MTIME_NS,
    NOW_MS,
    files_of,
    index_entry,
    keyed,
    log_of,
    make_partition,
    marker,
    of_producer,
    write_segment,
)
from tests.support.reference_batch import encode
from tests.support.reference_files import indexes

RULES = LoadRules(load_config(), NOW_MS)
FIRST, SECOND, THIRD = keyed(0, "ab"), keyed(2, "a"), keyed(3, "bab")
LAST = keyed(6, "ab")
EMPTY_SNAPSHOT = bytes.fromhex("0001 48674bc7 00000000")  # log-format F-14.2: no producers


def snapshot(partition: Path, offset: int) -> Path:
    return partition / file_name(offset, SNAPSHOT)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Segments 0 (three batches) and 6 (one); snapshots as a broker has them; no marker."""
    partition = make_partition(tmp_path / "logs", {0: [FIRST, SECOND, THIRD], 6: [LAST]})
    (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).unlink()
    snapshot(partition, 0).unlink()
    snapshot(partition, 6).write_bytes(EMPTY_SNAPSHOT)
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n1\n0 0\n")
    return partition


def recovered(partition: Path) -> dict[str, bytes]:
    """What a sound log has, once it is recovered: a snapshot at its end as well."""
    return files_of(partition) | {snapshot(partition, 8).name: EMPTY_SNAPSHOT}


def recover(partition: Path) -> LogRecovery | None:
    found = recover_log_dir(str(partition.parent), RULES)
    assert not found.has_clean_shutdown
    assert not (partition.parent / clean_shutdown.CLEAN_SHUTDOWN).exists()
    return found.logs[0] if found.logs else None


def recovery_point(partition: Path, offset: int) -> None:
    checkpoint.write(str(partition.parent / checkpoint.RECOVERY_POINT), {("orders", 0): offset})


def assert_left(partition: Path, path: Path, position: int, *told: str) -> None:
    before = files_of(partition)
    log = recover(partition)
    assert log is not None and log.problem is not None
    assert log.problem.startswith(f"{path}, byte {position}: ")
    for part in told:
        assert part in log.problem
    assert files_of(partition) == before


def test_golden_logs_come_out_as_kafka_wrote_them(tmp_path: Path) -> None:
    """F-12.5: every index is gone, and something torn stands at the end of each log."""
    fleet, root = corpora.extracted(), tmp_path / "logs"
    names = corpora.partitions()[::4]
    for name in names:
        shutil.copytree(fleet.before / name, root / name)
        for index in root.glob(f"{name}/*{INDEX}"):
            index.unlink()
        active = max(root.glob(f"{name}/*{LOG}"))
        active.write_bytes(active.read_bytes() + bytes(5) + b"torn" * 30)
    rules = LoadRules(load_config(None, str(fleet.topic_configs), {}), fleet.now_ms)
    found = {log.name: log for log in recover_log_dir(str(root), rules).logs}
    same = 0
    for name in names:
        assert found[name].problem is None and found[name].truncated is not None
        before, after = (files_of(directory / name) for directory in (fleet.before, root))
        for file, data in before.items():
            if file.endswith((LOG, INDEX, TIME_INDEX)):
                assert after[file] == data, (name, file)
        same += before == after
    assert same > len(names) / 2  # of the others an earlier cleaning took what says more


@pytest.mark.parametrize("zeros", [0, 1, 4096])
def test_the_torn_end_is_cut_off_at_every_length(partition: Path, zeros: int) -> None:
    """F-16.1.5: the log ends with the last whole batch; of preallocated files zeros are left."""
    active, torn = log_of(partition, 6), encode(keyed(8, "ab"))
    expected = recovered(partition)
    assert torn[-1] == 0  # it has no headers: a zero in the place of the last byte is right
    for size in range(1, len(torn) - 1):
        active.write_bytes(encode(LAST) + torn[:size] + bytes(zeros))
        log = recover(partition)
        assert log is not None and log.truncated is not None
        assert files_of(partition) == expected
    assert recover(partition) is None


def test_the_last_batch_is_cut_off_where_its_checksum_is_wrong(partition: Path) -> None:
    """As a block of it that did not get to the disk: Kafka cannot tell, and nothing is behind."""
    log_of(partition, 6).write_bytes(encode(LAST)[:-1] + b"?")
    expected = files_of(partition) | {log_of(partition, 6).name: b""}
    for kind in (INDEX, TIME_INDEX):
        expected[file_name(6, kind)] = b""
    log = recover(partition)
    assert log is not None and log.truncated is not None
    assert f"to 0 bytes, {len(encode(LAST))} torn bytes" in log.truncated
    assert files_of(partition) == expected


@pytest.mark.parametrize("call", ["rehearsed", "mark_deleted"])
def test_what_another_writer_appends_meanwhile_is_not_cut_off(
    partition: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Once all is read, and once later segments have gone, before the cut itself."""
    active, torn = log_of(partition, 6), encode(keyed(8, "ab"))
    active.write_bytes(encode(LAST) + torn[:-5])
    if call == "mark_deleted":
        log_of(partition, 0).write_bytes(encode(FIRST) + encode(SECOND)[:-5])
        active, torn = log_of(partition, 0), encode(SECOND)
        log_of(partition, 6).write_bytes(b"torn")
    grown = active.read_bytes() + torn[-5:]
    original = getattr(log_recovery, call)

    def appending(*arguments: object) -> object:
        done = original(*arguments)
        active.write_bytes(grown)
        return done

    monkeypatch.setattr(log_recovery, call, appending)
    log = recover(partition)
    assert log is not None and log.problem is not None
    assert log.problem.startswith(f"{active}: changed since it was read, so nothing was cut off")
    assert active.read_bytes() == grown


def test_a_log_that_another_writer_cuts_off_meanwhile_is_left(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is judged nothing is left of what was damaged."""
    active, whole = log_of(partition, 6), encode(LAST)
    active.write_bytes(whole + encode(keyed(8, "ab"))[:-5])
    require_as_read = log_recovery.require_unchanged

    def cutting(*arguments: Any) -> None:
        require_as_read(*arguments)
        active.write_bytes(whole)

    monkeypatch.setattr(log_recovery, "require_unchanged", cutting)
    log = recover(partition)
    assert log is not None and log.problem is not None
    assert log.problem.startswith(f"{active}: changed since it was read, so nothing was cut off")
    assert active.read_bytes() == whole


@pytest.mark.parametrize("what", ["another", "rolled", "rolled before"])
def test_of_a_log_in_use_nothing_is_judged_or_cut_off(
    partition: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Another `.log` than the damaged one is another file by the end, or a segment is new."""
    flipped(log_of(partition, 0), 70)  # sound batches are behind it
    used = log_of(partition, 6 if what == "another" else 8)

    def use() -> None:
        if what == "another":
            os.link(used, partition.parent / "link")
        else:
            write_segment(partition, 8, [keyed(8, "a")])

    def meanwhile(*arguments: Any) -> Rehearsal:
        if what == "rolled before":
            use()
        done = rehearsed(*arguments)
        if what != "rolled before":
            use()
        return done

    monkeypatch.setattr(log_recovery, "rehearsed", meanwhile)
    before = files_of(partition)
    log = recover(partition)
    assert log is not None and log.problem is not None
    assert log.problem.startswith(f"{used}: changed since it was read, so nothing was cut off")
    after = files_of(partition)
    assert {name: after.get(name) for name in before} == before
    assert used.exists()


def test_torn_later_segments_go(partition: Path) -> None:
    """F-16.1.5: the first truncated segment makes all later ones be deleted."""
    for base_offset in (6, 8):
        write_segment(partition, base_offset, [keyed(base_offset, "ab")])
    sound = encode(FIRST) + encode(SECOND)
    log_of(partition, 0).write_bytes(sound + encode(THIRD)[:40])
    log_of(partition, 6).write_bytes(bytes(100))
    log_of(partition, 8).write_bytes(b"")
    log = recover(partition)
    assert log is not None
    offset_index, time_index = indexes([encode(FIRST), encode(SECOND)], 0, 4096)
    assert files_of(partition) == {
        file_name(0, LOG): sound,
        file_name(0, INDEX): offset_index,
        file_name(0, TIME_INDEX): time_index,
        file_name(3, SNAPSHOT): EMPTY_SNAPSHOT,
        LEADER_EPOCH_CHECKPOINT: b"0\n1\n0 0\n",
    }
    gone = {file_name(b, kind) for b in (6, 8) for kind in (LOG, INDEX, TIME_INDEX, SNAPSHOT)}
    assert set(log.removed) == gone


def flipped(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_damage_with_a_sound_segment_behind_it_is_not_cut_off(partition: Path) -> None:
    path = log_of(partition, 0)
    path.write_bytes(path.read_bytes()[:-1])
    start = len(encode(FIRST) + encode(SECOND))
    assert_left(partition, path, start, "cut short", f"{file_name(6, LOG)} has a sound batch at")


def test_a_batch_out_of_order_is_not_cut_off(partition: Path) -> None:
    """What a broker appends behind a torn end that it was not told of. Its index has no entry of
    that batch, so Kafka takes it."""
    path = log_of(partition, 6)
    sound = encode(LAST) + encode(keyed(8, "a"))
    path.write_bytes(sound + encode(LAST))
    assert_left(partition, path, len(sound), "base offset 6, expected 9 or more")


def test_a_log_that_would_end_below_its_start_is_left(partition: Path) -> None:
    """F-16.1.6: a broker deletes all of it."""
    starts = {("orders", 0): 7}
    checkpoint.write(str(partition.parent / checkpoint.LOG_START), starts)
    path = log_of(partition, 6)
    path.write_bytes(b"torn")
    assert_left(partition, path, 0, "log ends at offset 6, before its log start offset 7")


def test_what_was_in_memory_only_is_brought_to_disk(partition: Path) -> None:
    """Of a broker that was killed: a round takes older records away for the sake of these."""
    write_segment(partition, 8, [keyed(8, "a")])
    recovery_point(partition, 6)
    files = WatchedFiles(LOCAL)
    assert recover_in(files, partition) is not None
    synced = [each.paths[0] for each in files.changes if each.name == "sync_file"]
    logs = [path for path in synced if path.endswith(LOG)]
    assert sorted(logs) == [str(log_of(partition, 6)), str(log_of(partition, 8))]


def test_segments_below_the_recovery_point_are_not_read(partition: Path) -> None:
    """F-16.1.5; their indexes stay, also where there are none to be believed."""
    recovery_point(partition, 6)
    flipped(log_of(partition, 0), 70)
    (partition / file_name(0, INDEX)).write_bytes(b"whatever")
    expected = recovered(partition)
    assert recover(partition) is not None
    assert files_of(partition) == expected


def test_indexes_are_made_anew(partition: Path) -> None:
    """F-12.5: missing, too long, too short, wrong, or those of a killed broker, full of zeros."""
    expected = recovered(partition)
    for base_offset, kind, data in (
        (0, INDEX, None),
        (6, INDEX, bytes(10_485_760)),
        (0, TIME_INDEX, expected[file_name(0, TIME_INDEX)][:-1]),
        (6, TIME_INDEX, expected[file_name(6, TIME_INDEX)] + bytes(10_485_744)),
        (6, TXN_INDEX, b""),
    ):
        path = partition / file_name(base_offset, kind)
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
    log = recover(partition)
    assert log is not None and len(log.rebuilt) == 5  # four indexes, and the snapshot at the end
    assert files_of(partition) == expected | {file_name(6, TXN_INDEX): b""}
    assert log_of(partition, 0).stat().st_mtime_ns == MTIME_NS  # a time that counts (F-15.4)


def test_snapshots_and_leader_epochs_are_made_anew(partition: Path) -> None:
    """F-14.3, F-16.1.8: a damaged one goes, one beyond the end too; an epoch that is lost is read
    from the batches, one that begins beyond the end is dropped."""
    expected = recovered(partition)
    snapshot(partition, 6).write_bytes(b"damaged")
    snapshot(partition, 9).write_bytes(EMPTY_SNAPSHOT)
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n7 8\n")
    assert recover(partition) is not None
    assert files_of(partition) == expected
    later = replace(LAST, leader_epoch=5)
    write_segment(partition, 6, [later])
    snapshot(partition, 6).write_bytes(EMPTY_SNAPSHOT)
    assert recover(partition) is not None
    assert (partition / LEADER_EPOCH_CHECKPOINT).read_text() == "0\n2\n0 0\n5 6\n"


def producers(partition: Path, offset: int) -> Sequence[tuple[int, int | None]]:
    """Producer id and the start of its open transaction, as a snapshot has them."""
    entries = producer_snapshot.read(str(snapshot(partition, offset)))
    return sorted((entry.producer_id, entry.current_txn_first_offset) for entry in entries)


def test_an_open_transaction_is_found_again(partition: Path) -> None:
    """C-23.4: without any snapshot the whole log is read."""
    transactional = replace(LAST, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0)
    write_segment(partition, 6, [transactional])
    snapshot(partition, 6).unlink()
    assert recover(partition) is not None
    assert producers(partition, 8) == [(7, 6)]


def test_a_damaged_checkpoint_stops_it_before_anything_is_changed(partition: Path) -> None:
    """F-13.2: a broker does not start either."""
    (partition / f"{file_name(0, LOG)}.deleted").write_bytes(b"")
    before = files_of(partition)
    for name in (checkpoint.RECOVERY_POINT, checkpoint.LOG_START):
        path = partition.parent / name
        path.write_text("0\n7\n")
        with pytest.raises(CorruptFileError, match=name):
            recover_log_dir(str(partition.parent), RULES)
        path.write_bytes(b"")  # as a broker that is killed in its first minute leaves it
    assert files_of(partition) == before


def test_after_a_clean_shutdown_a_torn_end_is_reported_and_left(partition: Path) -> None:
    """A broker would say nothing, append behind it, and fail at the start after that."""
    clean_shutdown.write(str(partition.parent))
    path = log_of(partition, 6)
    path.write_bytes(encode(LAST)[:-1])
    before = files_of(partition)
    found = recover_log_dir(str(partition.parent), RULES)
    assert found.has_clean_shutdown
    [log] = found.logs
    assert log.problem is not None
    assert log.problem.startswith(f"{path}, byte 0: batch is cut short")
    assert clean_shutdown.CLEAN_SHUTDOWN in log.problem
    assert files_of(partition) == before


def recover_in(files: Files, partition: Path) -> LogRecovery | None:
    logs = recover_log_dir(str(partition.parent), RULES, files=files).logs
    return logs[0] if logs else None


def test_killed_or_without_power_at_any_change_it_ends_the_same(
    tmp_path: Path, partition: Path
) -> None:
    """A swap to be finished, a torn end, a torn later segment, indexes and snapshots to be made."""
    aside = tmp_path / "cleaned"
    aside.mkdir()
    write_segment(aside, 0, [FIRST, THIRD])
    for kind in (LOG, INDEX, TIME_INDEX):
        shutil.copy(aside / file_name(0, kind), partition / f"{file_name(0, kind)}.swap")
    log_of(partition, 6).write_bytes(encode(LAST) + b"torn")
    write_segment(partition, 8, [])
    log_of(partition, 8).write_bytes(b"torn")
    (partition / file_name(6, INDEX)).write_bytes(bytes(4096))
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n7 8\n")
    damaged = in_memory(partition.parent)
    log = recover(partition)
    assert log is not None and (log.finished and log.truncated and log.rebuilt)
    done = files_of(partition)
    count = 0
    for left, kind in cuts(damaged, lambda files: recover_in(files, partition)):
        log = recover_in(left, partition)
        assert log is None or log.problem is None
        names = {entry.name for entry in left.list_directory(str(partition))}
        assert {name: left.read_bytes(str(partition / name)) for name in names} == done, kind
        count += 1
    assert count > 2 * 20


def test_an_offset_index_is_the_last_one_put_in_place(partition: Path) -> None:
    """L-25.3: by it a segment below the recovery point counts as whole; an index of aborted
    transactions that is not there yet would be missed by nobody."""
    log_of(partition, 0).write_bytes(
        encode(of_producer(FIRST, 7)) + marker(2, 7, ABORT_KEY) + encode(THIRD)
    )
    (partition / file_name(0, INDEX)).unlink()
    recovery_point(partition, 6)
    killed = in_memory(partition.parent)
    assert recover(partition) is not None
    wanted = index_entry(7, 0, 2, 3)
    assert (partition / file_name(0, TXN_INDEX)).read_bytes() == wanted
    for left, _ in cuts(killed, lambda files: recover_in(files, partition)):
        recover_in(left, partition)
        assert left.read_bytes(str(partition / file_name(0, TXN_INDEX))) == wanted


# Offsets 0 to 2, message format v1, lz4: the checksum of the frame's header is wrong (0x1a).
UNREADABLE_WRAPPER = bytes.fromhex(
    "00000000000000020000007bcc84ac3a01030000018bcfe56800ffffffff"
    "0000006504224d1860401a5600000016000100e03fa2208ece0100000001"
    "8bcfe5681900a30d0001000267310001742600331c00010a00102a390004"
    "2900010800041a009f010000003fbe6eaeb54b000012324b001f014b0014"
    "1f0296002b508bcfe5680100000000"
)


def test_a_message_that_cannot_be_read_is_named_where_it_is(partition: Path) -> None:
    """In an earlier segment: it is met when the producers before the last one are looked for."""
    log = log_of(partition, 0)
    log.write_bytes(struct.pack(">q", 5) + UNREADABLE_WRAPPER[8:])  # an offset has no checksum
    snapshot(partition, 6).unlink()
    recovery_point(partition, 6)
    assert_left(partition, log, 0, "header checksum")


def test_a_message_that_cannot_be_read_at_the_end_is_named_where_it_is(partition: Path) -> None:
    log = log_of(partition, 6)
    whole = log.read_bytes()
    log.write_bytes(whole + struct.pack(">q", 10) + UNREADABLE_WRAPPER[8:])
    assert_left(partition, log, len(whole), "header checksum")


def test_what_is_set_aside_is_not_settled_either(partition: Path) -> None:
    (partition / LEADER_EPOCH_CHECKPOINT).write_text("0\n2\n0 0\n")
    for left in (f"{5:020}.log.deleted", f"{7:020}.index", f"{4:020}.log.cleaned"):
        (partition / left).write_bytes(b"")
    before = files_of(partition)
    log = recover(partition)
    assert log is not None and log.problem is not None
    assert files_of(partition) == before
