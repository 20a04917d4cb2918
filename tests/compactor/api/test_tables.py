"""Results as tables: the columns, names that are hard to show, pandas where it is there."""

import importlib.util
from dataclasses import replace

import pytest

from compactor import api
from compactor.outcome.round_report import LogSections, LogStatus, RetentionReport, SegmentCounts
from compactor.reason_codes import ReasonCode
from tests.compactor.rounds import log, report


def test_a_report_has_a_row_for_each_log() -> None:
    gone = RetentionReport(time=SegmentCounts(3, 30))
    cleaned = replace(log(0), retention=gone, sections=LogSections(9, 1, 5, 2), notes=("a", "b"))
    bad = replace(log(1, LogStatus.SET_ASIDE, "bad"), reason_code=ReasonCode.DAMAGED)
    first, second = report(cleaned, bad).to_arrow().to_pylist()
    expected = {
        "topic": "orders", "partition": 0, "status": "cleaned", "reason": None, "notes": "a\nb",
        "bytes_before": 5_000_000, "records_read": 1000, "dropped_superseded": 580,
        "retention_time_bytes": 30, "retention_log_start_segments": 0,
        "total_bytes": 9, "clean_bytes": 1, "dirty_bytes": 5, "held_bytes": 2,
    }  # fmt: skip
    assert first.items() >= expected.items()
    assert (second["status"], second["reason_code"]) == ("set-aside", "damaged")
    assert second["total_bytes"] is None
    assert first.keys() == second.keys()


def test_names_are_escaped_in_a_notebook_and_plain_in_a_table() -> None:
    evil = report(log(topic="<script>\x1b\udcff"))
    shown = evil._repr_html_()
    assert r"&lt;script&gt;\x1b\udcff" in shown and "<script" not in shown
    assert evil.to_arrow()["topic"].to_pylist() == ["<script>\x1b\\udcff"]


def test_a_notebook_shows_the_first_of_many() -> None:
    shown = report(*(log(n) for n in range(60)))._repr_html_()
    assert shown.count("<tr>") == 51
    assert "and 10 more" in shown


def test_lists_of_results() -> None:
    status = api.UndoStatus.UNDONE
    undone = api.UndoReport(
        log_dir="/d", topic="t", partition=1, status=status, reason=None, segments=2, bytes=7
    )
    assert api.to_arrow([undone]).to_pylist() == [
        {
            "log_dir": "/d", "topic": "t", "partition": 1, "status": status.value,
            "reason": None, "reason_code": None, "segments": 2, "bytes": 7,
        }
    ]  # fmt: skip
    assert api.to_arrow([]).num_rows == 0


def test_a_name_within_the_same_name_stands_once_and_lists_are_no_python() -> None:
    rows = [{"keys": {"keys": 3, "records": 4}, "headers": [["a", None]], "notes": ["one", "two"]}]
    assert api.to_arrow(rows).to_pylist() == [
        {"keys": 3, "keys_records": 4, "headers": '["a", null]', "notes": "one\ntwo"}
    ]


def test_an_offset_beside_a_row_without_one_is_no_float_in_pandas() -> None:
    pytest.importorskip("pandas")
    rows: list[dict[str, int | None]] = [{"offset": 2**53 + 1}, {"offset": None}]
    assert list(api.to_pandas(rows)["offset"].dropna()) == [2**53 + 1]


def test_pandas_where_it_is() -> None:
    found = report(log(0))
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(ImportError, match="pandas"):
            found.to_pandas()
    else:
        assert list(found.to_pandas()["topic"]) == ["orders"]
