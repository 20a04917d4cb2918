"""Sound logs on which Kafka's cleaner stops are cleaned through every stage (docs/differences.md).

Expected: the batches of the same log cleaned without the limit that Kafka meets, the indexes by the
slow reference, the counts of a dry run.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from cleaner_jobs.messages import LogPlan
from compactor.outcome.round_report import LogReport, LogStatus
from storage.formats import segment_indexes
from tests.support.local_round import LocalRound
from tests.support.made_log import (
    INTERVAL_BYTES,
    MTIME_NS,
    batches_of,
    keyed,
    log_of,
    make_partition,
    plan_of,
    round_of,
)
from tests.support.reference_files import indexes

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SEGMENTS = {
    base: [keyed(base + i, (LETTERS * 12)[i : i + 150]) for i in (0, 150)]
    for base in (0, 300, 600, 900)
} | {1200: [keyed(1200, "a")]}


def planned(root: Path) -> tuple[Path, LogPlan]:
    """One group of four segments; by its checkpoint all but the last batch is clean."""
    partition = make_partition(root, SEGMENTS)
    return partition, plan_of(partition, [[0, 300, 600, 900]], 1200, first_dirty_offset=1199)


def clean(local: LocalRound, plan: LogPlan) -> LogReport:
    """The report of a round, after a dry one has told the same."""
    told = local.run(round_of(plan), dry_run=True).logs[0]
    report = local.run(round_of(plan)).logs[0]
    assert report.status is LogStatus.CLEANED, report.reason
    assert replace(told, status=LogStatus.CLEANED) == report
    return report


def check_index_files(partition: Path, base_offset: int) -> None:
    offset_index, time_index = indexes(
        batches_of(partition, base_offset), base_offset, INTERVAL_BYTES
    )
    assert log_of(partition, base_offset).with_suffix(".index").read_bytes() == offset_index
    assert log_of(partition, base_offset).with_suffix(".timeindex").read_bytes() == time_index


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize(
    ("max_log_bytes", "firsts"),
    [(2500, [0, 1, 2, 3, 4, 5, 6, 7]), (5000, [0, 2, 4, 6]), (7000, [0, 3, 6]), (15_800, [0, 7])],
)
def test_a_cleaned_segment_too_long_becomes_several(
    tmp_path: Path,
    local: LocalRound,
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    max_log_bytes: int,
    firsts: list[int],
) -> None:
    """C-13.7: each is named after its first batch, firsts by number."""
    local.cores = cores
    usual, plan = planned(tmp_path / "usual")
    assert clean(local, plan).notes == ()
    batches = batches_of(usual, 0)
    sizes = [len(raw) for raw in batches]
    assert len(batches) == 8, sizes
    limited, plan = planned(tmp_path / "limited")
    monkeypatch.setattr(segment_indexes, "MAX_LOG_BYTES", max_log_bytes)
    report = clean(local, plan)
    bases = [150 * first for first in firsts]
    logs = sorted(int(path.stem) for path in limited.glob("*.log"))
    assert logs == [*bases, 1200]
    assert [raw for base in bases for raw in batches_of(limited, base)] == batches
    for base in bases:
        check_index_files(limited, base)
        assert log_of(limited, base).stat().st_mtime_ns == MTIME_NS + 900 * 7_000_000  # C-14.3
    assert (report.segments_before, report.segments_after) == (4, len(bases))
    assert report.notes[0].startswith(f"{len(bases) - 1} segment")
    assert sorted(int(path.stem) for path in limited.glob("*.snapshot")) == sorted(
        {0, 300, 600, 900, 1200} & {*bases, 1200}
    )


@pytest.mark.parametrize("cores", [1, 3])
def test_indexes_without_room_are_made_sparse(
    tmp_path: Path, local: LocalRound, cores: int
) -> None:
    """C-13.7: room for two offset entries and two time entries. A second round finds it as it is
    to be."""
    local.cores = cores
    partition, plan = planned(tmp_path / "logs")
    plan = replace(plan, segment_index_bytes=24, index_interval_bytes=0)
    report = clean(local, plan)
    batches = batches_of(partition, 0)
    offset_index, time_index = indexes(batches, 0, 0)
    assert (len(offset_index), len(time_index)) == (7 * 8, 7 * 12)
    every_second = b"".join(offset_index[at : at + 8] for at in (8, 24, 40))
    assert log_of(partition, 0).with_suffix(".index").read_bytes() == every_second
    every_fourth = time_index[36:48] + time_index[-12:]
    assert log_of(partition, 0).with_suffix(".timeindex").read_bytes() == every_fourth
    assert report.notes == (
        "1 segment with fewer index entries than usual: "
        "segment.index.bytes has no room for all of them",
    )
    before = log_of(partition, 0).stat()
    again = replace(
        plan_of(partition, [[0]], 1200, first_dirty_offset=1200),
        segment_index_bytes=24,
        index_interval_bytes=0,
    )
    assert clean(local, again).notes == report.notes
    assert log_of(partition, 0).stat() == before
