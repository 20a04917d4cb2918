"""Each log that a plan does not take is told with the reason, and the others go on."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cleaner_jobs.staging import STAGED_MARKER
from compactor.errors import ConfigError
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan, notices_of
from compactor.reason_codes import ReasonCode
from compactor.settings.config import load_config, with_filters
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.formats import checkpoint
from storage.formats.leader_epoch_checkpoint import LEADER_EPOCH_CHECKPOINT
from tests.compactor.plan_logs import (
    BATCH_BYTES,
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    open_transaction,
    plan_log_dirs,
    with_settings,
)

PASSED_OVER, SET_ASIDE = LogStatus.PASSED_OVER, LogStatus.SET_ASIDE


def the_only(found: RoundPlan) -> LogReport:
    assert not found.logs
    (report,) = found.not_cleaned
    return report


def judged(found: RoundPlan) -> tuple[LogStatus, str]:
    report = the_only(found)
    assert report.reason is not None
    return report.status, report.reason


def test_files_that_are_not_kafkas_are_named(tmp_path: Path) -> None:
    log_dir = Path(build(tmp_path / "d"))
    (partition,) = (path for path in log_dir.iterdir() if path.is_dir())
    log = file_name(0, LOG)
    names = [f".{log}.Ab12Cd", f"{log}.bak", f"{log}.gz"]
    ours = (f"{log}{STAGED_MARKER}-run-1", "partition.metadata.tmp", f"{log}.deleted")
    for name in (*names, *ours):
        (partition / name).write_bytes(b"")
    found = plan_log_dirs([str(log_dir)], COMPACT, NOW_MS)
    assert found.log_dirs[0].foreign == tuple(f"{partition.name}/{name}" for name in names)
    assert (
        f"{log_dir}: 3 files in partition directories are not Kafka's "
        f"({', '.join(found.log_dirs[0].foreign)}). No command changes such a file, and --output "
        "copies it"
    ) in notices_of(found)


def test_a_topic_of_unknown_policy_is_passed_over(tmp_path: Path) -> None:
    status, reason = judged(plan_log_dirs([build(tmp_path / "d")], load_config(), NOW_MS))
    assert (status, reason) == (
        PASSED_OVER,
        "cleanup.policy is not known: no configuration was given for this topic "
        "(--metadata DIR, --topic-configs FILE, or [[topics]] in --config FILE)",
    )


BROKERS_BUSINESS = "; its retention is left to the broker, and nothing is deleted here"


@pytest.mark.parametrize(
    ("policy", "told", "retention"), [("delete", "delete", BROKERS_BUSINESS), ("", "empty", "")]
)
def test_a_topic_that_is_not_compacted_is_passed_over(
    tmp_path: Path, policy: str, told: str, retention: str
) -> None:
    config = load_config(settings={"cleanup.policy": policy})
    status, reason = judged(plan_log_dirs([build(tmp_path / "d")], config, NOW_MS))
    assert status is PASSED_OVER
    assert reason == f"cleanup.policy is {told}, so it is not compacted (set by --set)" + retention


def test_the_brokers_own_topics_are_known(tmp_path: Path) -> None:
    """C-20.4."""
    shapes = [Shape("__consumer_offsets", 7), Shape("__transaction_state", 1)]
    found = plan_log_dirs([build(tmp_path / "d", *shapes)], load_config(), NOW_MS)
    assert [log.name for log in found.logs] == ["__consumer_offsets-7", "__transaction_state-1"]


def test_the_metadata_log_is_never_taken(tmp_path: Path) -> None:
    """C-20.4; not its first partition, which has a directory of its own kind, nor another one."""
    shapes = [Shape("__cluster_metadata", 0), Shape("__cluster_metadata", 1)]
    found = plan_log_dirs([build(tmp_path / "d", *shapes)], COMPACT, NOW_MS)
    assert not found.logs
    assert [report.status for report in found.not_cleaned] == [PASSED_OVER] * 2
    assert all("metadata log of KRaft" in (log.reason or "") for log in found.not_cleaned)


def test_a_name_that_no_topic_has_is_nothing_to_look_at_the_disk_for(tmp_path: Path) -> None:
    (tmp_path / "d" / "it's-0").mkdir(parents=True)
    (tmp_path / "d" / "linked-0").symlink_to(tmp_path)
    found = plan_log_dirs([build(tmp_path / "d", Shape("t"))], COMPACT, NOW_MS)
    codes = {report.topic: report.reason_code for report in found.not_cleaned}
    assert codes == {"it's": ReasonCode.FOREIGN_FILE, "linked": ReasonCode.UNREADABLE}
    assert {report.status for report in found.not_cleaned} == {SET_ASIDE}


def test_filters_match_whole_names_and_exclude_wins(tmp_path: Path) -> None:
    shapes = [Shape("orders"), Shape("orders-eu"), Shape("users"), Shape("users2")]
    log_dir = build(tmp_path / "d", *shapes)
    found = plan_log_dirs([log_dir], with_filters(COMPACT, "orders|users.?", "users"), NOW_MS)
    assert [log.name for log in found.logs] == ["orders-0", "users2-0"]
    assert [log.reason for log in found.not_cleaned] == [
        "left out: not among the topics to include, 'orders|users.?'",
        "left out: among the topics to exclude, 'users'",
    ]
    with pytest.raises(ConfigError, match=r"^include: "):
        with_filters(COMPACT, "(", None)


def test_a_log_that_is_clean_already(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 4))
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    reason = "cleaned up to offset 4; all that is newer is in the active segment"
    assert judged(found) == (PASSED_OVER, reason)
    report = the_only(found)
    assert (report.first_dirty_offset, report.first_uncleanable_offset) == (4, 4)


def test_a_log_that_starts_in_its_active_segment(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    checkpoint.write(str(tmp_path / "d" / checkpoint.LOG_START), {("t", 0): 5})
    reason = "the log starts at offset 5; all that is newer is in the active segment"
    assert judged(plan_log_dirs([log_dir], COMPACT, NOW_MS)) == (PASSED_OVER, reason)


def test_a_log_that_is_not_dirty_enough(tmp_path: Path) -> None:
    """C-5.5: strictly above."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 2))
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    needed = "min.cleanable.dirty.ratio 0.5"
    reason = f"dirty ratio 0.5000 is not above {needed}: 79 B of 158 B are dirty"
    assert judged(found) == (PASSED_OVER, reason)
    found = plan_log_dirs([log_dir], with_settings({"max.compaction.lag.ms": "998000"}), NOW_MS)
    told = "; max.compaction.lag.ms of 16 min 38 s has not run out"  # since 2000
    assert judged(found) == (PASSED_OVER, reason + told)
    found = plan_log_dirs([log_dir], with_settings({"max.compaction.lag.ms": "997999"}), NOW_MS)
    assert [log.name for log in found.logs] == ["t-0"]


def test_a_log_whose_high_watermark_is_low(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    checkpoint.write(str(tmp_path / "d" / checkpoint.REPLICATION), {("t", 0): 1})
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    assert judged(found) == (
        PASSED_OVER,
        f"{2 * BATCH_BYTES} B from offset 0 on wait behind the high watermark 1 "
        "(replication-offset-checkpoint); --assume-fully-replicated looks past it",
    )
    (log,) = plan_log_dirs([log_dir], replace(COMPACT, assume_fully_replicated=True), NOW_MS).logs
    assert log.first_uncleanable_offset == 4


def test_a_log_whose_records_are_too_young(tmp_path: Path) -> None:
    """C-4.4: records of 1000 and 2000 ms, an active segment."""
    config = with_settings({"min.compaction.lag.ms": "500"})
    log_dir = build(tmp_path / "d")
    found = plan_log_dirs([log_dir], config, 1499)
    assert judged(found) == (
        PASSED_OVER,
        "158 B from offset 0 on wait behind min.compaction.lag.ms of 0.5 s: "
        "of segment 0 the youngest record is 0.001 s too young",
    )
    (log,) = plan_log_dirs([log_dir], config, 1500).logs
    assert log.first_uncleanable_offset == 2
    (log,) = plan_log_dirs([log_dir], config, 2500).logs
    assert log.first_uncleanable_offset == 4


@pytest.mark.parametrize("base_offset", [0, 1])
def test_a_log_with_what_a_cleaning_left(tmp_path: Path, base_offset: int) -> None:
    """E-70, E-71, E-72: of a segment that there is, and of another one; a plan settles no swap."""
    log_dir = build(tmp_path / "d")
    name = file_name(base_offset, LOG)
    for leftover, status in ((".deleted", None), (".cleaned", None), (".swap", SET_ASIDE)):
        path = tmp_path / "d" / "t-0" / f"{name}{leftover}"
        path.write_bytes(b"")
        found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
        if status is None:  # a broker would remove it when it starts, whatever is in it
            assert found.logs
        else:
            assert judged(found) == (
                SET_ASIDE,
                f"{name}{leftover}: left by a cleaning that was cut short; "
                "the next run settles it first, and so does compactor recover, "
                "if all else of the log is sound",
            )
        path.unlink()


def test_a_log_with_a_torn_tail(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    path = tmp_path / "d" / "t-0" / file_name(4, LOG)
    whole = path.read_bytes()
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        status, reason = judged(plan_log_dirs([log_dir], COMPACT, NOW_MS))
        assert (status, reason.split(":")[0]) == (SET_ASIDE, f"{path}, byte 0")


def test_a_log_with_a_batch_that_says_it_is_of_an_old_format(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    path = tmp_path / "d" / "t-0" / file_name(4, LOG)
    batch = path.read_bytes()
    path.write_bytes(batch[:16] + b"\x01\x04" + batch[18:])
    status, reason = judged(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    assert status is SET_ASIDE
    assert reason == f"{path}, byte 0: codec 4 is not one of format v1"


def test_a_log_that_ends_before_it_starts(tmp_path: Path) -> None:
    """F-16.1: a broker would delete every segment."""
    log_dir = build(tmp_path / "d")
    checkpoint.write(str(tmp_path / "d" / checkpoint.LOG_START), {("t", 0): 7})
    path = tmp_path / "d" / "t-0" / file_name(4, LOG)
    problem = "log ends at offset 6, before its log start offset 7"
    reason = f"{path}, byte 79: {problem}"
    assert judged(plan_log_dirs([log_dir], COMPACT, NOW_MS)) == (SET_ASIDE, reason)


def test_segments_whose_index_is_missing_are_grouped_by_the_indexes_of_their_recovery(
    tmp_path: Path,
) -> None:
    """F-16.1, C-9.1: an entry of 12 bytes in each time index, whatever was on disk before."""
    log_dir = build(tmp_path / "d")
    partition = tmp_path / "d" / "t-0"
    for base_offset in (0, 2, 4):
        (partition / file_name(base_offset, INDEX)).unlink()
        (partition / file_name(base_offset, TIME_INDEX)).write_bytes(bytes(1200))
    for index_bytes, groups in (("24", [[0, 2]]), ("23", [[0], [2]])):
        config = with_settings({"segment.index.bytes": index_bytes})
        (log,) = plan_log_dirs([log_dir], config, NOW_MS).logs
        assert [[s.base_offset for s in group.segments] for group in log.groups] == groups


def test_a_recovered_segment_is_as_young_as_its_records_without_a_time_index_as_its_file(
    tmp_path: Path,
) -> None:
    """F-12.8, F-16.1: records of 1000 and 2000 ms in files of 5000 ms."""
    log_dir = build(tmp_path / "d")
    for base_offset in (0, 2):
        (tmp_path / "d" / "t-0" / file_name(base_offset, TIME_INDEX)).unlink()
        os.utime(tmp_path / "d" / "t-0" / file_name(base_offset, LOG), (5, 5))
    config = with_settings({"min.compaction.lag.ms": "500"})
    told = "of segment 0 the youngest record is 0.001 s too young"
    assert judged(plan_log_dirs([log_dir], config, 5499))[1].endswith(told)
    for base_offset in (0, 2):
        (tmp_path / "d" / "t-0" / file_name(base_offset, INDEX)).unlink()
    assert judged(plan_log_dirs([log_dir], config, 1499))[1].endswith(told)
    (log,) = plan_log_dirs([log_dir], config, 2499).logs
    assert log.first_uncleanable_offset == 2


def test_a_log_with_a_segment_that_is_too_large(tmp_path: Path) -> None:
    """F-2.6."""
    log_dir = build(tmp_path / "d")
    os.truncate(tmp_path / "d" / "t-0" / file_name(0, LOG), 2**31 - 1)
    assert plan_log_dirs([log_dir], COMPACT, NOW_MS).logs
    os.truncate(tmp_path / "d" / "t-0" / file_name(0, LOG), 2**31)
    status, reason = judged(plan_log_dirs([log_dir], COMPACT, NOW_MS))
    assert status is SET_ASIDE
    assert reason.startswith(f"{file_name(0, LOG)} has 2147483648 bytes, more than the 2147483647")


def test_a_log_with_an_open_transaction(tmp_path: Path) -> None:
    """C-4.5, E-47: it bounds the range."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7))
    open_transaction(tmp_path / "d" / "t-0", producer_id=7, first_offset=3, end_offset=6)
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    told = "producer 7 has one open since offset 3, last written to 0 s ago "
    told += "(1970-01-01T00:16:40.000Z)"
    (plan,) = found.logs
    assert plan.first_uncleanable_offset == 2
    (facts,) = found.facts
    assert facts.judgement.cleanable[:2] == (0, 2)
    assert facts.judgement.bounds[-1] == ("open transaction", 3, told)


def test_a_log_with_aborted_transactions_names_its_transaction_indexes(tmp_path: Path) -> None:
    """That of the active segment, too (C-8.2); an empty one says nothing."""
    log_dir = build(tmp_path / "d")
    (tmp_path / "d" / "t-0" / file_name(0, TXN_INDEX)).write_bytes(b"")
    for base_offset in (2, 4):
        (tmp_path / "d" / "t-0" / file_name(base_offset, TXN_INDEX)).write_bytes(bytes(34))
    (plan,) = plan_log_dirs([log_dir], COMPACT, NOW_MS).logs
    assert plan.txn_index_base_offsets == (2, 4)
    assert plan.log_start_offset == 0


def test_logs_of_a_directory_with_a_malformed_checkpoint(tmp_path: Path) -> None:
    """C-4.3: those of the other directory go on."""
    one, other = build(tmp_path / "1", Shape("t"), Shape("d", 5)), build(tmp_path / "2", Shape("u"))
    path = tmp_path / "1" / checkpoint.CLEANER_OFFSET
    path.write_bytes(b"0\n1\n")
    found = plan_log_dirs([one, other], COMPACT, NOW_MS)
    assert [log.name for log in found.logs] == ["u-0"]
    assert [(report.topic, report.status) for report in found.not_cleaned] == [
        ("d", SET_ASIDE),
        ("t", SET_ASIDE),
    ]
    assert all(report.reason == found.log_dirs[0].problem for report in found.not_cleaned)
    assert (
        found.log_dirs[0].problem == f"{path}, byte 2: the count says 1, and lines with entries: 0"
    )
    assert not found.checkpoint_repairs


def test_damaged_leader_epochs_set_a_log_aside_where_retention_may_need_them(
    tmp_path: Path,
) -> None:
    """C-18.4: known after the cleaning, they would stop the deletion that follows it."""
    log_dir = build(tmp_path / "d")
    (partition,) = [path for path in (tmp_path / "d").iterdir() if path.is_dir()]
    path = partition / LEADER_EPOCH_CHECKPOINT
    path.write_bytes(b"0\n1\n0\n")
    assert plan_log_dirs([log_dir], COMPACT, NOW_MS).logs
    config = load_config(settings={"cleanup.policy": "compact,delete"})
    status, reason = judged(plan_log_dirs([log_dir], config, NOW_MS))
    assert (status, reason) == (
        SET_ASIDE,
        f"{path}, byte 4: line '0': 2 fields expected, found 1",
    )
