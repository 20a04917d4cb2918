"""What goes from stage to stage: logs with a problem drop out, indexes are asked where to cut."""

import json
from pathlib import Path

import pytest

from cleaner_jobs.messages import PROBLEM, REWRITE, SCAN, Part, TaskProblem, value_of
from cleaner_jobs.tasks import scan
from compactor.cleaning.stages import release_entries
from compactor.jobs import engines
from compactor.outcome.round_report import LogStatus
from compactor.planning import layout
from storage.file_names import INDEX, file_name
from storage.files.files import Files
from tests.compactor.small_rounds import COUNTS, GROUPS, logs_in
from tests.support.local_round import LocalRound, Rows
from tests.support.made_log import (
    INTERVAL_BYTES,
    batch,
    batches_of,
    keyed,
    make_partition,
    plan_of,
    record,
    round_of,
)
from tests.support.reference_batch import encode


def test_the_first_problem_of_a_log_is_its_reason(local: LocalRound, tmp_path: Path) -> None:
    def add(rows: Rows) -> Rows:
        problems = [TaskProblem(0, "damaged", "/x", n, f"problem {n}") for n in (1, 2)]
        return [*rows, *(("problem", json.dumps(problem)) for problem in problems)]

    local.after["scan"] = add
    report = local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert report.logs[0].reason == "/x, byte 1: problem 1"
    assert [count for _, count in local.stages] == [1]  # nothing is left to do afterwards


def test_rows_may_come_back_in_any_order(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "PART_RECORDS", 2)
    for stage in ("scan", "resolve", "rewrite"):
        local.after[stage] = lambda rows: rows[::-1]
    report = local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert report.logs[0].counts == COUNTS


def big_log(root: Path) -> Path:
    return make_partition(
        root / "logs", {0: [keyed(i, "abcdefgh" * 25) for i in range(0, 2000, 200)], 2000: []}
    )


def test_a_segment_is_cut_at_the_entries_of_its_index(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STRETCH_BYTES", "LOG_COST_BYTES"):
        monkeypatch.setattr(layout, name, 1)
    local.cores = 4
    partition = big_log(tmp_path)
    entries = (partition / file_name(0, INDEX)).stat().st_size // 8
    assert entries == 4  # every 4096 bytes, so every second batch of about 2600
    assert INTERVAL_BYTES == 4096
    report = local.run(round_of(plan_of(partition, [[0]], 2000)))
    assert (report.logs[0].status, report.logs[0].counts.records_kept) == (LogStatus.CLEANED, 8)
    assert dict(local.stages)["scan"] > 1


def test_a_record_larger_than_a_stretch_is_in_one(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-12.6: cuts are where batches start, so that no record is cut, whatever its size."""
    for name in ("STRETCH_BYTES", "LOG_COST_BYTES"):
        monkeypatch.setattr(layout, name, 1000)
    local.cores = 4
    large = batch(record(1, b"a", b"x" * 50_000))
    partition = make_partition(
        tmp_path / "logs",
        {0: [keyed(0, "a"), large, keyed(2, "b"), keyed(3, "b"), keyed(4, "c")], 5: []},
        interval_bytes=0,
    )
    report = local.run(round_of(plan_of(partition, [[0]], 5)))
    assert (report.logs[0].status, report.logs[0].counts.records_kept) == (LogStatus.CLEANED, 3)
    assert dict(local.stages)["scan"] == 2  # the large record's batch ends the first stretch
    assert batches_of(partition, 0) == [encode(b) for b in (large, keyed(3, "b"), keyed(4, "c"))]


def test_an_index_that_is_no_file_sets_its_log_alone_aside(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when something else comes into its place between two looks at it."""
    monkeypatch.setattr(layout, "STRETCH_BYTES", 1)
    bad, good = logs_in(tmp_path, "bad-0"), logs_in(tmp_path, "good-0")
    index = bad / file_name(4, INDEX)
    index.unlink()
    index.mkdir()
    report = local.run(round_of(plan_of(bad, GROUPS, 12), plan_of(good, GROUPS, 12, log_id=1)))
    assert report.logs[0].status is LogStatus.SET_ASIDE
    assert report.logs[0].reason == f"{index}, byte 0: is a directory, not a file"
    assert report.logs[1].status is LogStatus.CLEANED


@pytest.mark.parametrize("what", ["gone", "cut short", "of another log"])
def test_what_an_index_says_is_not_just_believed(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(layout, "STRETCH_BYTES", 1)
    partition = big_log(tmp_path)
    path = partition / file_name(0, INDEX)
    data = path.read_bytes()
    if what == "gone":
        path.unlink()
    elif what == "cut short":
        path.write_bytes(data[:-1])
    else:
        path.write_bytes(data[:4] + (3000).to_bytes(4, "big") + data[8:])
    report = local.run(round_of(plan_of(partition, [[0]], 2000)))
    expected = LogStatus.CLEANED if what == "gone" else LogStatus.SET_ASIDE
    assert report.logs[0].status is expected
    if what == "of another log":
        assert "index puts the start of a batch inside this one, at 3000" in (
            report.logs[0].reason or ""
        )
    if what == "cut short":
        assert str(path) in (report.logs[0].reason or "")


def test_progress_is_polled_while_a_stage_runs(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "POLL_SECONDS", 0.0001)
    polled: list[str] = []

    def done_bytes(_: str, stage: str, __: Files) -> int:
        polled.append(stage)
        return 0

    monkeypatch.setattr(engines, "done_bytes", done_bytes)
    local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert set(polled) <= {"scan", "resolve", "rewrite"}
    assert polled


def test_a_round_reads_no_entry_after_its_resolve(
    local: LocalRound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STRETCH_BYTES", "LOG_COST_BYTES"):
        monkeypatch.setattr(layout, name, 1)
    local.cores = 2
    parts: list[Part] = []
    written: dict[str, bytes] = {}
    left: dict[str, bytes] = {}

    def note(rows: Rows) -> Rows:
        parts.extend(value_of(Part, json.loads(value)) for kind, value in rows if kind != PROBLEM)
        written.update((part.file, Path(part.file).read_bytes()) for part in parts)
        return rows

    local.after[SCAN] = note
    local.before[REWRITE] = lambda: left.update((p, Path(p).read_bytes()) for p in written)
    report = local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert (report.logs[0].status, report.logs[0].counts) == (LogStatus.CLEANED, COUNTS)
    expected = {path: bytearray(data) for path, data in written.items()}
    for part in parts:
        length = 24 * part.entries
        expected[part.file][part.block_at : part.block_at + length] = bytes(length)
    assert left == expected
    assert left != written
    assert len(parts) > len(written)  # of one file more than one


def test_a_file_that_is_gone_is_no_error(local: LocalRound, tmp_path: Path) -> None:
    parts: list[Part] = []

    def note(rows: Rows) -> Rows:
        parts.extend(value_of(Part, json.loads(value)) for _, value in rows)
        return rows

    local.after[SCAN] = note
    local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert parts and not Path(parts[0].file).exists()
    release_entries(parts)
