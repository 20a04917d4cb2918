"""Whole rounds over transactions in odd states that no broker writes; expected by hand (C-7, C-8).

What brokers write is held against Kafka's bytes by the golden logs.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from cleaner_jobs.messages import LogPlan
from cleaner_jobs.tasks import scan
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning import layout
from storage.file_names import INDEX, TXN_INDEX, file_name
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    ABORT_KEY,
    COMMIT_KEY,
    NOW_MS,
    RETENTION_MS,
    batches_of,
    files_of,
    index_entry,
    keyed,
    make_partition,
    marker,
    of_producer,
    plan_of,
    round_of,
)
from tests.support.reference_batch import ReferenceBatch, decode

ACTIVE = [keyed(100, "z")]
Segments = dict[int, list[bytes | ReferenceBatch]]


def planned(
    root: Path, segments: Segments, indexes: dict[int, bytes], first_dirty_offset: int = 0
) -> tuple[Path, LogPlan]:
    """One group of all segments; an offset index has an entry for every batch but the first."""
    partition = make_partition(root / "logs", {**segments, 100: ACTIVE}, interval_bytes=0)
    for base_offset, data in indexes.items():
        (partition / file_name(base_offset, TXN_INDEX)).write_bytes(data)
    plan = plan_of(partition, [list(segments)], 100, first_dirty_offset)
    (group,) = plan.groups
    with_sizes = tuple(
        s._replace(index_bytes=(partition / file_name(s.base_offset, INDEX)).stat().st_size)
        for s in group.segments
    )
    groups = (replace(group, segments=with_sizes),)
    return partition, replace(plan, groups=groups, txn_index_base_offsets=tuple(indexes))


def clean(local: LocalRound, plan: LogPlan) -> LogReport:
    """The report of a round, after a dry one has told the same and changed nothing."""
    before = files_of(Path(plan.path))
    told = local.run(round_of(plan), dry_run=True).logs[0]
    assert files_of(Path(plan.path)) == before
    report = local.run(round_of(plan)).logs[0]
    assert report.status is LogStatus.CLEANED, report.reason
    assert replace(told, status=LogStatus.CLEANED) == report
    return report


def records_of(partition: Path) -> list[int]:
    return [r.offset for raw in batches_of(partition, 0) for r in decode(raw).records]


def stages_of(local: LocalRound) -> list[str]:
    return [stage for stage, _ in local.stages]


RUN_P: Segments = {
    0: [
        of_producer(keyed(0, "x"), 1),
        marker(1, 1, ABORT_KEY),
        keyed(2, "k"),
        of_producer(keyed(3, "k"), 1),
        marker(4, 1, COMMIT_KEY),
    ]
}


@pytest.mark.parametrize(("has_index", "kept"), [(True, [1, 2, 3, 4]), (False, [1, 3, 4])])
def test_a_log_that_the_indexes_tell_wrong_is_scanned_again(
    tmp_path: Path, local: LocalRound, has_index: bool, kept: list[int]
) -> None:
    """C-7.11, run P: with an index entry for offset 2 both k survive, with an empty index one."""
    partition, plan = planned(tmp_path, RUN_P, {0: index_entry(1, 0, 1, 2)}, first_dirty_offset=2)
    if not has_index:
        (partition / file_name(0, INDEX)).write_bytes(b"")
        segment = plan.groups[0].segments[0]._replace(index_bytes=0)
        plan = replace(plan, groups=(replace(plan.groups[0], segments=(segment,)),))
    report = clean(local, plan)
    assert records_of(partition) == kept
    assert ("rescan" in stages_of(local)) == has_index
    assert (report.counts.dropped_aborted, report.counts.dropped_superseded) == (1, 4 - len(kept))
    assert (partition / file_name(0, TXN_INDEX)).read_bytes() == index_entry(1, 0, 1, 2)


def test_without_its_index_aborted_data_is_compacted_by_key(
    tmp_path: Path, local: LocalRound
) -> None:
    """E-53: it hides what was there before; its marker gets a horizon, having no data."""
    segments: Segments = {
        0: [keyed(0, "ab"), of_producer(keyed(2, "ac"), 7), marker(4, 7, ABORT_KEY)]
    }
    partition, plan = planned(tmp_path, segments, {})
    report = clean(local, plan)
    assert records_of(partition) == [1, 2, 3, 4]
    assert decode(batches_of(partition, 0)[-1]).delete_horizon_ms == NOW_MS + RETENTION_MS
    assert report.counts.dropped_aborted == 0
    assert "rescan" not in stages_of(local)
    assert not list(partition.glob("*.txnindex"))


def test_an_index_entry_without_its_marker_sets_the_log_aside(
    tmp_path: Path, local: LocalRound
) -> None:
    """C-8.2: Kafka takes data of producer 7 for aborted to the end, and its latest k is lost."""
    segments: Segments = {
        0: [keyed(0, "km")],
        10: [of_producer(keyed(10, "kK"), 7), marker(12, 7, COMMIT_KEY)],
    }
    indexes = {0: index_entry(7, 0, 1, 2)}
    partition, plan = planned(tmp_path, segments, indexes, first_dirty_offset=10)
    before = files_of(partition)
    report = local.run(round_of(plan)).logs[0]
    assert report.status is LogStatus.SET_ASIDE
    where = f"{partition / file_name(0, TXN_INDEX)}, byte 0: entry 0 does not fit the log"
    assert (report.reason or "").startswith(where)
    assert files_of(partition) == before


@pytest.mark.parametrize("cores", [1, 3])
def test_a_transaction_over_pieces_of_a_group(
    tmp_path: Path, local: LocalRound, monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """E-50, whether one task rewrites the group or several do."""
    local.cores = cores
    monkeypatch.setattr(scan, "PART_RECORDS", 1)
    monkeypatch.setattr(layout, "STRETCH_BYTES", 1)
    monkeypatch.setattr(layout, "LOG_COST_BYTES", 1)
    segments: Segments = {
        0: [keyed(0, "ab"), of_producer(keyed(2, "ac"), 7), of_producer(keyed(4, "b"), 8)],
        10: [of_producer(keyed(10, "b"), 7), marker(11, 7, ABORT_KEY), keyed(12, "c")],
        20: [marker(20, 8, COMMIT_KEY), of_producer(keyed(21, "d"), 7), marker(22, 7, ABORT_KEY)],
    }
    first, second = index_entry(7, 2, 11, 4), index_entry(7, 21, 22, 23)
    partition, plan = planned(tmp_path, segments, {10: first, 20: second})
    report = clean(local, plan)
    assert records_of(partition) == [0, 4, 11, 12, 20, 22]
    assert report.counts.dropped_aborted == 4
    assert [p.name for p in partition.glob("*.txnindex")] == [file_name(0, TXN_INDEX)]
    assert (partition / file_name(0, TXN_INDEX)).read_bytes() == first + second
    assert (dict(local.stages)["rewrite"] > 1) == (cores > 1)
