"""One log judged by names, sizes and checkpoints, then by a look into it: numbers by hand.

The logs of `plan_logs`: 79 bytes, two offsets and one time a segment (1000 ms, 2000 ms, …).
"""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from compactor.cleaning.overflow import Splitting, split_overflowing
from compactor.inspection.explain import explain
from compactor.log_dirs.survey import CheckpointOffsets
from compactor.outcome.round_report import LogStatus
from compactor.planning.candidate import (
    YOUNGER_RECORDS,
    Judgement,
    RoundClock,
    judge,
    name_defect,
    prepare,
)
from compactor.planning.selection import BoundName
from compactor.settings.rules import KAFKAS_DEFAULTS
from compactor.settings.topic_config import TopicConfig, topic_config
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, file_name
from storage.log.log_dir import PartitionListing, list_log_dir
from tests.compactor.plan_logs import (
    COMPACT,
    NOW_MS,
    Shape,
    build,
    clean_up_to,
    open_transaction,
    plan_log_dirs,
    with_settings,
)

WEEK_MS = 7 * 24 * 60 * 60 * 1000
CLOCK = RoundClock(NOW_MS, WEEK_MS)
CONFIG = topic_config({}, "a test", "a test")
NEVER_CLEANED = CheckpointOffsets(None, 0, None, "")


THREE_SEGMENTS = Shape()


def listed(root: Path, shape: Shape = THREE_SEGMENTS) -> PartitionListing:
    (partition,) = list_log_dir(build(root, shape)).partitions
    return partition


def again(partition: PartitionListing) -> PartitionListing:
    """As its directory is now."""
    (found,) = list_log_dir(os.path.dirname(partition.path)).partitions
    return found


def judged(
    partition: PartitionListing,
    offsets: CheckpointOffsets = NEVER_CLEANED,
    config: TopicConfig = CONFIG,
    now_ms: int = NOW_MS,
) -> Judgement:
    return judge(partition, os.path.dirname(partition.path), config, offsets, now_ms)


def bounds_of(judgement: Judgement) -> dict[BoundName, int]:
    return {bound.name: bound.offset for bound in judgement.bounds}


class TestDefect:
    def test_a_swap_that_was_cut_short_is_one(self, tmp_path: Path) -> None:
        partition = listed(tmp_path / "d")
        for kind in (LOG, INDEX):
            Path(partition.path, f"{file_name(0, kind)}.swap").write_bytes(b"")
        told = name_defect(again(partition))
        assert told is not None
        assert told.text.startswith(f"{file_name(0, INDEX)}.swap and 1 more: left by a cleaning")
        Path(partition.path, f"{file_name(0, INDEX)}.swap").unlink()
        told = name_defect(again(partition))
        assert told is not None
        assert told.text.startswith(f"{file_name(0, LOG)}.swap: left by a cleaning")

    def test_a_link_comes_before_all_else(self, tmp_path: Path) -> None:
        partition = listed(tmp_path / "d")
        os.symlink("/nowhere", os.path.join(partition.path, file_name(9, LOG)))
        Path(partition.path, "nonsense.log").write_bytes(b"")
        told = name_defect(again(partition))
        assert told is not None and told.text.endswith("; links are not followed")


class TestJudge:
    @pytest.mark.parametrize(
        ("max_lag_ms", "cleaner", "expected"),
        [(4000, None, 0), (3999, None, 1), (1000, None, 3000), (1000, 2, 2000), (1000, 4, 0)],
    )
    def test_by_how_much_it_is_overdue(
        self, tmp_path: Path, max_lag_ms: int, cleaner: int | None, expected: int
    ) -> None:
        """Likewise. C-4.7: the oldest of what is dirty and not active."""
        config = replace(CONFIG, max_compaction_lag_ms=max_lag_ms)
        offsets = CheckpointOffsets(cleaner, 0, None, "")
        found = judged(listed(tmp_path / "d"), offsets, config, now_ms=5000)
        assert found.compaction_delay_ms == expected

    def test_a_log_without_a_lag_is_not_read(self, tmp_path: Path) -> None:
        partition = listed(tmp_path / "d")
        for segment in partition.segments:
            for kind in (LOG, INDEX, TIME_INDEX):
                Path(partition.path, file_name(segment.base_offset, kind)).unlink()
        found = judged(partition)
        assert (found.is_eligible, found.log_end_offset) == (True, None)


class TestPrepare:
    def test_an_open_transaction_above_the_high_watermark_says_nothing(
        self, tmp_path: Path
    ) -> None:
        partition = listed(tmp_path / "d")
        open_transaction(Path(partition.path), 7, first_offset=3, end_offset=6)
        judgement = judged(again(partition), CheckpointOffsets(None, 0, 2, ""))
        found = prepare(judgement, CLOCK, clean_shutdown=True)
        assert BoundName.OPEN_TRANSACTION not in bounds_of(found.judgement)
        assert found.judgement.last_stable_offset == 2

    def test_a_time_index_does_not_make_a_young_segment_old_enough(self, tmp_path: Path) -> None:
        """At 5000 ms; the second segment is of 2000 ms, and an index of zeros says of 1970."""
        partition = listed(tmp_path / "d")
        path = Path(partition.path, file_name(2, TIME_INDEX))
        path.write_bytes(bytes(12))
        clock = RoundClock(5000, WEEK_MS)
        old, young = (replace(CONFIG, min_compaction_lag_ms=lag_ms) for lag_ms in (3000, 3001))
        found = prepare(judged(partition, config=old, now_ms=5000), clock, clean_shutdown=True)
        assert [segment.base_offset for segment in found.to_rewrite] == [0, 2]
        with pytest.raises(CorruptFileError, match=path.name):
            prepare(judged(partition, config=young, now_ms=5000), clock, clean_shutdown=True)


CHECKED = replace(COMPACT, rules=KAFKAS_DEFAULTS)
CLOCK_MS = 1_700_000_000_000
FIVE_MINUTES_MS = 300_000
NAME = file_name(2, LOG)  # of the second of three segments


def written_at(log_dir: str, time_ms: int, segment: str = NAME, partition: str = "t-0") -> None:
    """All at the clock's time but for one segment."""
    for path in Path(log_dir).glob(f"*/*{LOG}"):
        ms = time_ms if (path.parent.name, path.name) == (partition, segment) else CLOCK_MS
        os.utime(path, ns=(ms * 10**6, ms * 10**6))


@pytest.mark.parametrize("segment", [file_name(base, LOG) for base in (0, 2, 4)])
@pytest.mark.parametrize(("ahead_ms", "is_taken"), [(FIVE_MINUTES_MS, True), (300_001, False)])
def test_a_log_written_after_the_clock_is_passed_over(
    tmp_path: Path, segment: str, ahead_ms: int, is_taken: bool
) -> None:
    """By more than five minutes; whichever of its segments it is, the active one too."""
    log_dir = build(tmp_path / "d", Shape("t"), Shape("u"))
    written_at(log_dir, CLOCK_MS + ahead_ms, segment)
    found = plan_log_dirs([log_dir], CHECKED, CLOCK_MS)
    assert [log.name for log in found.logs] == (["t-0"] if is_taken else []) + ["u-0"]
    if not is_taken:
        (report,) = found.not_cleaned
        assert (report.status, report.topic) == (LogStatus.PASSED_OVER, "t")
        assert report.reason == (
            f"{segment} was written 300 s after the clock of the round, 2023-11-14T22:13:20.000Z: "
            "tombstones would be dated too early, and go too soon. Correct the clock or "
            "--as-of; --any-clock accepts it"
        )
        assert explain(found, "t-0", CHECKED).reason == report.reason


@pytest.mark.parametrize(
    ("machine_ms", "is_taken"),
    [
        (CLOCK_MS + 3_600_000, True),
        (CLOCK_MS + 3_599_999, False),
        (CLOCK_MS - 3_600_000, False),  # it has gone back
    ],
)
def test_what_is_written_while_a_run_goes_on_is_held_against_the_machines_clock(
    tmp_path: Path, machine_ms: int, is_taken: bool
) -> None:
    """An hour later, as a run writes that recovers first; the round's own clock stays."""
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS + 3_600_000 + FIVE_MINUTES_MS, partition="t-0")
    found = plan_log_dirs([log_dir], CHECKED, CLOCK_MS, machine_ms=machine_ms)
    assert (len(found.logs), found.as_of_ms) == (int(is_taken), CLOCK_MS)
    if not is_taken:
        assert f"{NAME} was written 65 min after the clock" in (found.not_cleaned[0].reason or "")


def test_nothing_else_is_done_to_it(tmp_path: Path) -> None:
    """No retention, and its impossible checkpoint entry stays."""
    log_dir = build(tmp_path / "d")
    clean_up_to(tmp_path / "d", ("t", 0, 99))
    written_at(log_dir, CLOCK_MS + FIVE_MINUTES_MS + 1)
    settings = with_settings({"cleanup.policy": "compact,delete", "retention.ms": "1"})
    found = plan_log_dirs([log_dir], replace(settings, rules=KAFKAS_DEFAULTS), CLOCK_MS)
    assert not found.retention
    assert not found.checkpoint_repairs
    unchecked = plan_log_dirs([log_dir], settings, CLOCK_MS)
    assert len(unchecked.retention) == len(unchecked.logs) == 1
    assert unchecked.checkpoint_repairs


@pytest.mark.parametrize(("ahead_ms", "is_told"), [(FIVE_MINUTES_MS, False), (300_001, True)])
def test_records_of_a_later_time_are_noted_and_cleaned(
    tmp_path: Path, ahead_ms: int, is_told: bool
) -> None:
    """A time index has twelve bytes an entry: the time, then an offset."""
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS)
    path = tmp_path / "d" / "t-0" / file_name(2, TIME_INDEX)
    path.write_bytes((CLOCK_MS + ahead_ms).to_bytes(8, "big") + (1).to_bytes(4, "big"))
    found = plan_log_dirs([log_dir], CHECKED, CLOCK_MS)
    (log,) = found.logs
    notes = (YOUNGER_RECORDS,) if is_told else ()
    assert (log.notes, found.facts[0].notes) == (notes, notes)
    assert split_overflowing(found, lambda: found, Splitting()).logs[0].notes == notes
    assert plan_log_dirs([log_dir], COMPACT, CLOCK_MS).logs[0].notes == ()


def test_a_segment_without_time_index_tells_nothing(tmp_path: Path) -> None:
    log_dir = build(tmp_path / "d")
    written_at(log_dir, CLOCK_MS)
    (tmp_path / "d" / "t-0" / file_name(0, TIME_INDEX)).unlink()
    (tmp_path / "d" / "t-0" / file_name(2, TIME_INDEX)).write_bytes(b"cut")
    assert plan_log_dirs([log_dir], CHECKED, CLOCK_MS).logs[0].notes == ()
