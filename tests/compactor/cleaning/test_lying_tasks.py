"""What a task returns is not what it can be: its log stays as it was, and the round goes on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cleaner_jobs.messages import PART, REWRITTEN, Part, PartSection, Rewritten
from compactor.outcome.round_report import LogStatus
from storage.file_names import LOG, file_name
from tests.compactor.small_rounds import check_one_failed, two_logs
from tests.support.local_round import LocalRound, Rows

Value = dict[str, Any]  # by the names of its fields


def changed(
    kind: str, rows: Rows, fields: tuple[str, ...], change: Callable[[Value], None]
) -> Rows:
    """The rows of one kind of which the second log's first is changed."""
    said: Rows = []
    is_done = False
    for row_kind, text in rows:
        values = dict(zip(fields, json.loads(text), strict=True)) if row_kind == kind else {}
        if not is_done and values.get("log_id") == 1:
            change(values)
            is_done = True
        said.append((row_kind, json.dumps(list(values.values())) if values else text))
    assert is_done
    return said


def test_a_part_without_sections_sets_its_log_aside(local: LocalRound, tmp_path: Path) -> None:
    _, _, plan = two_logs(tmp_path)

    def lose(value: Value) -> None:
        value["sections"] = []

    local.after["scan"] = lambda rows: changed(PART, rows, Part._fields, lose)
    reason = "segment 0 was read to byte 0"
    check_one_failed(local, tmp_path, LogStatus.SET_ASIDE, reason, plan)


def test_a_section_that_begins_before_the_first_record_sets_its_log_aside(
    local: LocalRound, tmp_path: Path
) -> None:
    """Kernels would read what stands before the states of the records."""
    _, _, plan = two_logs(tmp_path)

    def shift(value: Value) -> None:
        value["sections"][0][PartSection._fields.index("first_ordinal")] = -1

    local.after["scan"] = lambda rows: changed(PART, rows, Part._fields, shift)
    report = local.run(plan)
    assert [log.status for log in report.logs] == [LogStatus.CLEANED, LogStatus.SET_ASIDE]
    assert "claim more records than were scanned" in (report.logs[1].reason or "")


def test_a_staged_file_that_is_not_named_fails_its_log_alone(
    local: LocalRound, tmp_path: Path
) -> None:
    _, _, plan = two_logs(tmp_path)

    def forget(value: Value) -> None:
        value["index_file"] = ""

    local.after["rewrite"] = lambda rows: changed(REWRITTEN, rows, Rewritten._fields, forget)
    reason = "files written: 3; named: 2"
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)


def test_a_group_that_is_said_to_stay_and_would_be_merged_fails_its_log_alone(
    local: LocalRound, tmp_path: Path
) -> None:
    _, _, plan = two_logs(tmp_path)

    def keep(value: Value) -> None:
        value["left_in_place"] = True

    local.after["rewrite"] = lambda rows: changed(REWRITTEN, rows, Rewritten._fields, keep)
    check_one_failed(local, tmp_path, LogStatus.FAILED, "reported as left in place", plan)


def test_a_part_that_says_it_stands_where_anothers_does_sets_its_own_log_aside(
    local: LocalRound, tmp_path: Path
) -> None:
    """The entries of parts are released in place, among them those of the other log."""
    _, _, plan = two_logs(tmp_path)

    def lie(rows: Rows) -> Rows:
        others = [json.loads(text) for kind, text in rows if kind == PART]
        at = Part._fields.index("block_at")
        assert len({other[Part._fields.index("file")] for other in others}) == 1
        states_at = others[0][at] + 24 * others[0][Part._fields.index("entries")]
        return changed(PART, rows, Part._fields, lambda value: value.update(block_at=states_at))

    local.after["scan"] = lie
    reason = "entries of the map are not what was written"
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)


@pytest.mark.parametrize("name", ["log_file", "facts_file"])
def test_a_file_that_no_task_writes_is_not_touched(
    name: str, local: LocalRound, tmp_path: Path
) -> None:
    """What a task names may be renamed, or emptied as it is joined."""
    good, _, plan = two_logs(tmp_path)
    segment = good / file_name(4, LOG)

    def name_another(value: Value) -> None:
        value[name] = str(segment)

    local.after["rewrite"] = lambda rows: changed(REWRITTEN, rows, Rewritten._fields, name_another)
    reason = f"{segment}, byte 0: no task of this round writes a file of this name"
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)


def test_a_part_in_a_file_that_no_task_writes_fails_its_log_alone(
    local: LocalRound, tmp_path: Path
) -> None:
    _, bad, plan = two_logs(tmp_path)
    segment = bad / file_name(4, LOG)
    local.after["scan"] = lambda rows: changed(
        PART, rows, Part._fields, lambda value: value.update(file=str(segment))
    )
    reason = f"{segment}, byte 0: no task of this round writes a file of this name"
    check_one_failed(local, tmp_path, LogStatus.FAILED, reason, plan)
