"""The report as JSON: the fields that a scheduler relies on."""

import json
from dataclasses import replace

import pytest

from compactor.host.printable import iso_time
from compactor.outcome.exit_codes import ExitCode
from compactor.outcome.json_values import to_json
from compactor.outcome.round_report import LogSections, LogStatus, RetentionReport, SegmentCounts
from compactor.reason_codes import ReasonCode
from compactor.views.report_json import summary, to_line, to_text
from tests.compactor.rounds import log, report


def test_a_summary_begins_every_document() -> None:
    assert summary("run", ExitCode.REFUSED, "locked", ReasonCode.LOCK_HELD) == {
        "schema_version": 2,
        "command": "run",
        "status": "refused",
        "exit_code": 3,
        "reason_code": "lock-held",
        "error": "locked",
    }


def test_the_whole_report() -> None:
    gone = RetentionReport(SegmentCounts(1, 10), SegmentCounts(2, 20), SegmentCounts(3, 30), 700)
    sections = LogSections(6_000_000, 1_000_000, 4_000_000, 500_000)
    cleaned = replace(log(0), retention=gone, sections=sections)
    bad = replace(log(1, LogStatus.SET_ASIDE, "bad"), reason_code=ReasonCode.DAMAGED)
    document = to_json(report(cleaned, bad))
    retention = {
        "log_start": {"segments": 1, "bytes": 10},
        "size": {"segments": 2, "bytes": 20},
        "time": {"segments": 3, "bytes": 30},
    }
    counts = {
        "records": {
            "read": 1000,
            "kept": 400,
            "dropped": {
                "superseded": 580,
                "tombstone": 15,
                "null_key": 5,
                "aborted": 0,
                "marker": 0,
            },
        },
        "batches": {"read": 10, "kept": 9, "rebuilt": 6, "emptied": 1},
    }
    nothing = json.loads(json.dumps(counts), parse_int=lambda _: 0)
    assert document == {
        "dry_run": False,
        "seconds": 4.0,
        "originals": None,
        "copies": [],
        "engine": None,
        "totals": {
            "logs": {
                "cleaned": 1,
                "would-clean": 0,
                "passed-over": 0,
                "set-aside": 1,
                "failed": 0,
            },
            "segments_before": 7,
            "segments_after": 2,
            "bytes_before": 5_000_000,
            "bytes_after": 2_000_000,
            **counts,
            "retention": retention,
        },
        "horizons_from_ms": 1_700_000_000_123,
        "warnings": [],
        "notices": [],
        "start_problems": [],
        "phases": [
            {"name": "survey", "seconds": 0.01, "log_bytes": 0, "mb_per_second": None},
            {"name": "scan", "seconds": 2.0, "log_bytes": 5_000_000, "mb_per_second": None},
        ],
        "logs": [
            {
                "log_dir": "/data",
                "topic": "orders",
                "partition": 0,
                "status": "cleaned",
                "reason": None,
                "reason_code": None,
                "total_bytes": 6_000_000,
                "clean_bytes": 1_000_000,
                "dirty_bytes": 4_000_000,
                "held_bytes": 500_000,
                "notes": [],
                "first_dirty_offset": 0,
                "first_uncleanable_offset": 900,
                "end_offset": 900,
                "delete_retention_ms": 60_000,
                "segments_before": 7,
                "segments_after": 2,
                "bytes_before": 5_000_000,
                "bytes_after": 2_000_000,
                **counts,
                "retention": {"log_start_offset": 700, **retention},
            },
            {
                "log_dir": "/data",
                "topic": "orders",
                "partition": 1,
                "status": "set-aside",
                "reason": "bad",
                "reason_code": "damaged",
                "total_bytes": None,
                "clean_bytes": None,
                "dirty_bytes": None,
                "held_bytes": None,
                "notes": [],
                "first_dirty_offset": None,
                "first_uncleanable_offset": None,
                "end_offset": None,
                "delete_retention_ms": None,
                "segments_before": 0,
                "segments_after": 0,
                "bytes_before": 0,
                "bytes_after": 0,
                **nothing,
                "retention": {
                    "log_start_offset": None,
                    **json.loads(json.dumps(retention), parse_int=lambda _: 0),
                },
            },
        ],
    }


def test_a_log_that_grew_says_why_in_its_notes() -> None:
    """The terminal says it of all logs together."""
    for status in (LogStatus.CLEANED, LogStatus.WOULD_CLEAN):
        grown = replace(log(0, status), bytes_before=1_000_000, bytes_after=1_022_000)
        document = to_json(report(grown, log(1, status)))
        (note,), nothing = [each["notes"] for each in document["logs"]]
        assert note.startswith("larger by 22,000 bytes: batches that are written anew take more")
        assert nothing == []


def test_the_summary_is_the_beginning_of_the_report() -> None:
    both = report(log(0))
    document, short = to_json(both), to_json(both, is_summary=True)
    assert dict(list(document.items())[: len(short)]) == short


def test_names_that_are_no_utf8_make_valid_json() -> None:
    line = to_line(to_json(report(log(topic="a\udcff\x1b\n"))))
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line)["logs"][0]["topic"] == "a\udcff\x1b\n"


def test_the_text_is_the_same_document() -> None:
    document = to_json(report(log(0)))
    assert json.loads(to_text(document)) == json.loads(to_line(document)) == document


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_000_000_000_007, "2001-09-09T01:46:40.007Z"),
        (2**63 - 1, str(2**63 - 1)),
    ],
)
def test_times_are_utc(ms: int, shown: str) -> None:
    assert iso_time(ms) == shown
