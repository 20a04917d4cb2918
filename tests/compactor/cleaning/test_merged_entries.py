"""Between resolve and rewrite the entries of all parts are given back, and nothing else is."""

import json
from pathlib import Path

import pytest

from cleaner_jobs.messages import PROBLEM, REWRITE, SCAN, Part, part_from
from compactor.cleaning.merged_entries import release_entries
from compactor.outcome.round_report import LogStatus
from compactor.planning import layout
from tests.compactor.small_rounds import COUNTS, GROUPS, logs_in
from tests.support.local_round import LocalRound, Rows
from tests.support.made_log import plan_of, round_of


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
        parts.extend(part_from(json.loads(value)) for kind, value in rows if kind != PROBLEM)
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
        parts.extend(part_from(json.loads(value)) for _, value in rows)
        return rows

    local.after[SCAN] = note
    local.run(round_of(plan_of(logs_in(tmp_path), GROUPS, 12)))
    assert parts and not Path(parts[0].file).exists()
    release_entries(parts)
