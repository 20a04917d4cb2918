"""Whole plans: against Kafka's choice over the golden corpora, and what a round needs of one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.messages import ActiveProducer, LogPlan
from compactor.errors import RefusedError
from compactor.planning.round_plan import RoundPlan
from compactor.settings.config import load_config, with_filters
from storage.file_names import LOG, SNAPSHOT, file_name
from storage.formats import checkpoint, producer_snapshot
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    plan_log_dirs,
    with_settings,
)
from tests.golden import corpora
from tests.support.file_states import state_of


@pytest.fixture(scope="module")
def kafkas() -> dict[str, Any]:
    """Kafka's outcome of each log of the corpora, but for those at which it fails."""
    outcome = json.loads((corpora.extracted().root / "fleet.json").read_text())["results"]
    return {name: log for name, log in outcome.items() if "clean_error" not in log}


@pytest.fixture(scope="module")
def plan() -> RoundPlan:
    fleet = corpora.extracted()
    return plan_log_dirs(
        [str(fleet.before)], load_config(None, str(fleet.topic_configs)), fleet.now_ms
    )


def taken(plan: RoundPlan) -> dict[str, LogPlan]:
    return {log.name: log for log in plan.logs}


def test_kafkas_logs_are_taken_and_no_others(plan: RoundPlan, kafkas: dict[str, Any]) -> None:
    """C-5."""
    wanted = {name for name, log in kafkas.items() if log["cleaned"]}
    assert taken(plan).keys() & kafkas.keys() == wanted
    left = {f"{log.topic}-{log.partition}" for log in plan.not_cleaned}
    assert left == kafkas.keys() - wanted
    assert len(wanted) > 200
    assert len(left) > 20


def test_ranges_and_weights_are_kafkas(plan: RoundPlan, kafkas: dict[str, Any]) -> None:
    """C-4, C-5.2."""
    checked = 0
    for log, facts in zip(plan.logs, plan.facts, strict=False):
        if log.name not in kafkas:
            continue
        wanted, found = kafkas[log.name], facts.judgement.cleanable
        assert found.first_dirty_offset == wanted["first_dirty_offset"], log.name
        assert found.first_uncleanable_offset == wanted["first_uncleanable_offset"], log.name
        assert found.clean_bytes == wanted["clean_bytes"], log.name
        assert found.cleanable_bytes == wanted["cleanable_bytes"], log.name
        assert found.ratio == wanted["cleanable_ratio"], log.name
        assert log.first_dirty_offset == found.first_dirty_offset
        assert log.first_uncleanable_offset == wanted["end_offset"]
        checked += 1
    assert checked > 200


def test_active_producers_are_kafkas(plan: RoundPlan, kafkas: dict[str, Any]) -> None:
    """C-10.1, C-23.4."""
    seen = 0
    for name, log in taken(plan).items():
        wanted = {
            ActiveProducer(int(producer), entry["epoch"], entry["last_data_offset"])
            for producer, entry in kafkas.get(name, {}).get("active_producers", {}).items()
        }
        if name in kafkas:
            assert set(log.active_producers) == wanted, name
            seen += len(wanted)
    assert seen > 50


def test_groups_become_kafkas_segments(plan: RoundPlan, kafkas: dict[str, Any]) -> None:
    """C-9, C-14.1."""
    merged = 0
    with_retention = {f"{log.topic}-{log.partition}" for log in plan.retention}
    for name, log in taken(plan).items():
        if name not in kafkas:
            continue
        after = (corpora.extracted().after / name).glob(f"*{LOG}")
        bases = sorted(int(path.name.removesuffix(LOG)) for path in after)
        wanted = [base for base in bases if base < log.first_uncleanable_offset]
        found = [group.base_offset for group in log.groups]
        if name in with_retention:  # Kafka's retention has followed its cleaning
            found = [base for base in found if base >= bases[0]]
        assert found == wanted, name
        merged += sum(len(group.segments) > 1 for group in log.groups)
    assert merged > 50


def test_the_dirtiest_log_is_first(plan: RoundPlan) -> None:
    """C-5.6."""
    ratios = [facts.judgement.cleanable.ratio for facts in plan.facts[: len(plan.logs)]]
    assert ratios == sorted(ratios, reverse=True)
    assert [log.log_id for log in plan.logs] == list(range(len(plan.logs)))


def test_repairs_are_kafkas(plan: RoundPlan, kafkas: dict[str, Any]) -> None:
    """C-4.2: of logs that are not taken the file afterwards has Kafka's; of others, more came."""
    fleet = corpora.extracted()
    before = checkpoint.read(str(fleet.before / checkpoint.CLEANER_OFFSET))
    after = checkpoint.read(str(fleet.after / checkpoint.CLEANER_OFFSET))
    (repairs,) = plan.checkpoint_repairs.values()
    for topic, partition in before:
        name = f"{topic}-{partition}"
        if name in kafkas and not kafkas[name]["cleaned"]:
            wanted = after[topic, partition]
            assert repairs.get((topic, partition), before[topic, partition]) == wanted
    assert sum(f"{topic}-{partition}" not in taken(plan) for topic, partition in repairs) == 2


def test_a_plan_has_all_that_a_round_needs(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("t", 3, segments=4, producer_id=7))
    clean_up_to(tmp_path / "d", ("t", 3, 2))
    settings = {
        "segment.bytes": "160",
        "delete.retention.ms": "5",
        "index.interval.bytes": "6",
        "segment.index.bytes": "70",
    }
    (log,) = plan_log_dirs([log_dir], with_settings(settings), NOW_MS).logs
    assert (log.log_id, log.log_dir, log.name) == (0, log_dir, "t-3")
    assert log.path == os.path.join(log_dir, "t-3")
    assert (log.first_dirty_offset, log.first_uncleanable_offset) == (2, 6)
    bases = [[segment.base_offset for segment in group.segments] for group in log.groups]
    assert bases == [[0, 2], [4]]  # C-6.4: from the first segment on, though that one is clean
    assert (log.delete_retention_ms, log.index_interval_bytes) == (5, 6)
    assert log.segment_index_bytes == 70
    assert log.active_producers == (ActiveProducer(7, 0, 7),)


def test_nothing_is_changed(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("t", producer_id=7), Shape("u"))
    clean_up_to(tmp_path / "d", ("t", 0, 99))
    before = state_of(tmp_path)
    assert plan_log_dirs([log_dir], COMPACT, NOW_MS).logs
    assert state_of(tmp_path) == before


def test_logs_of_all_directories_are_in_one_order(tmp_path: Path) -> None:
    one = build(tmp_path / "1", Shape("a"), Shape("b", segments=4))
    other = build(tmp_path / "2", Shape("c"), Shape("a", 1))
    clean_up_to(tmp_path / "1", ("b", 0, 4))  # 79 of 237 bytes
    clean_up_to(tmp_path / "2", ("c", 0, 2))  # 79 of 158
    config = with_settings({"min.cleanable.dirty.ratio": "0.1"})
    found = plan_log_dirs([one, other], config, NOW_MS)
    assert [log.name for log in found.logs] == ["a-0", "a-1", "c-0", "b-0"]
    assert [log.log_dir for log in found.logs] == [one, other, other, one]
    assert [facts.path for facts in found.log_dirs] == [one, other]


def test_producers_expire_by_the_settings_clock(tmp_path: Path) -> None:
    """C-23.4: the last timestamp is 3000."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7))
    config = with_settings({"producer.id.expiration.ms": "1000"})
    (log,) = plan_log_dirs([log_dir], config, 3999).logs
    assert log.active_producers
    (log,) = plan_log_dirs([log_dir], config, 4000).logs
    assert not log.active_producers


def test_after_a_clean_shutdown_without_snapshots_no_producer_is_active(tmp_path: Path) -> None:
    """C-23.4; after an unclean one the log is asked."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7))
    for path in (tmp_path / "d" / "t-0").glob(f"*{SNAPSHOT}"):
        path.unlink()
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    assert (found.logs[0].active_producers, found.log_dirs[0].has_clean_shutdown) == ((), True)
    (tmp_path / "d" / ".kafka_cleanshutdown").unlink()
    found = plan_log_dirs([log_dir], COMPACT, NOW_MS)
    assert found.logs[0].active_producers == (ActiveProducer(7, 0, 5),)
    assert not found.log_dirs[0].has_clean_shutdown


def test_compact_delete_is_cleaned_and_then_held_against_its_retention(tmp_path: Path) -> None:
    """C-18.1, with Kafka's default of seven days and no size."""
    config = load_config(settings={"cleanup.policy": "compact,delete"})
    found = plan_log_dirs([build(tmp_path / "d")], config, NOW_MS)
    assert len(found.logs) == 1
    (retention,) = found.retention
    assert (retention.limits.retention_ms, retention.limits.retention_bytes) == (604_800_000, None)
    assert not retention.estimate.by_rule
    unlimited = load_config(settings={"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    assert plan_log_dirs([str(tmp_path / "d")], unlimited, NOW_MS).retention == ()


def test_delete_alone_is_left_alone(tmp_path: Path) -> None:
    config = load_config(settings={"cleanup.policy": "delete", "retention.ms": "0"})
    found = plan_log_dirs([build(tmp_path / "d")], config, NOW_MS)
    assert (found.logs, found.retention) == ((), ())
    assert "cleanup.policy is delete, so it is not compacted" in str(found.not_cleaned[0].reason)


def test_directories_that_are_no_logs_are_listed_as_ignored(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    (tmp_path / "d" / "scratch").mkdir()
    moved = "t-1." + "0" * 32 + "-delete"
    (tmp_path / "d" / moved).mkdir()
    (facts,) = plan_log_dirs([log_dir], COMPACT, NOW_MS).log_dirs
    assert [name for name, _ in facts.ignored] == ["scratch", moved]


def test_a_log_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="No such file or directory"):
        plan_log_dirs([str(tmp_path / "none")], COMPACT, NOW_MS)


@pytest.mark.parametrize(
    ("entry", "log_start", "repair", "dirty_from"),
    [(99, 0, 0, 0), (7, 0, 0, 0), (6, 0, None, 6), (2, 0, None, 2), (0, 1, 1, 1), (99, 3, 3, 3)],
)
def test_impossible_entries_are_set_right(
    tmp_path: Path, entry: int, log_start: int, repair: int | None, dirty_from: int
) -> None:
    """C-4.1; also of a log that is then not taken."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, entry))
    checkpoint.write(str(tmp_path / "d" / checkpoint.LOG_START), {("t", 0): log_start})
    for ratio in ("0.0", "1.0"):
        found = plan_log_dirs(
            [log_dir], with_settings({"min.cleanable.dirty.ratio": ratio}), NOW_MS
        )
        wanted = {} if repair is None else {log_dir: {("t", 0): repair}}
        assert found.checkpoint_repairs == wanted
        assert found.facts[0].judgement.first_dirty.offset == dirty_from


def test_what_is_set_aside_or_not_compacted_is_left_with_its_entry(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u"))
    clean_up_to(tmp_path / "d", ("t", 0, 99), ("u", 0, 99), ("gone", 0, 99))
    (tmp_path / "d" / "t-0" / f"{file_name(2, LOG)}.swap").write_bytes(b"")
    found = plan_log_dirs([log_dir], with_filters(COMPACT, None, "u"), NOW_MS)
    assert not found.checkpoint_repairs


def test_a_damaged_snapshot_is_passed_over_as_kafka_does(tmp_path: Path) -> None:
    """F-14.3: the one before it counts, and the batches after that."""
    log_dir = build(tmp_path / "d", Shape(producer_id=7))
    path = tmp_path / "d" / "t-0" / file_name(6, SNAPSHOT)
    path.write_bytes(path.read_bytes()[:-1])
    (log,) = plan_log_dirs([log_dir], COMPACT, NOW_MS).logs
    assert log.active_producers == (ActiveProducer(7, 0, 5),)
    entry = producer_snapshot.read(str(path.with_name(file_name(4, SNAPSHOT))))[0]
    assert entry.last_offset == 3


@pytest.mark.parametrize(("lag_ms", "is_due"), [(NOW_MS - 1000, False), (NOW_MS - 1001, True)])
def test_an_overdue_log_is_taken_whatever_its_ratio(
    tmp_path: Path, lag_ms: int, is_due: bool
) -> None:
    """C-4.7, C-5.5: its first batch is of 1000 ms."""
    config = with_settings(
        {"min.cleanable.dirty.ratio": "1.0", "max.compaction.lag.ms": str(lag_ms)}
    )
    found = plan_log_dirs([build(tmp_path / "d")], config, NOW_MS)
    assert bool(found.logs) is is_due
    assert found.facts[0].judgement.compaction_delay_ms == int(is_due)
