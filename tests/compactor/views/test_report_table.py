"""The tables fit the terminal, tell every number, and never flood it."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from compactor.outcome.round_report import (
    CleaningReport,
    LogStatus,
    PhaseReport,
    RetentionReport,
    SegmentCounts,
)
from compactor.reason_codes import ReasonCode
from compactor.views.report_table import SHOWN_LOGS, SHOWN_REASONS, report_view
from tests.compactor.rounds import COUNTS, log, report

PASSED, ASIDE, FAILED = LogStatus.PASSED_OVER, LogStatus.SET_ASIDE, LogStatus.FAILED


def shown(what: CleaningReport, width: int = 80) -> list[str]:
    console = Console(file=StringIO(), width=width, highlight=False, markup=False)
    console.print(report_view(what, width), crop=False)  # as `show` does
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_round_at_80_columns() -> None:
    assert [line for line in shown(report(log(0))) if line.strip(" ─")] == [
        "Compaction; as of 2023-11-14T22:13:20.123Z",
        "log       segments             size      records  dropped  superseded  tombstone",
        "orders-0     7 → 2  5.0 MB → 2.0 MB  1,000 → 400      600         580         15",
        "phase   seconds    read",
        "survey     0.01",
        "scan       2.00  5.0 MB",
        "Records dropped: 580 superseded, 15 tombstone, 5 null key.",
        "Logs: 1 cleaned. 5.0 MB → 2.0 MB, 60.0% gone, in 4.0 s.",
        "Next: start the broker. This checks every file first, if you like:",
        "  compactor verify /data",
    ]


def test_a_rate_is_shown_where_it_means_something() -> None:
    """Not of renames, nor of so little that the start of the workers is measured."""
    phases = (
        PhaseReport("first-use", 30.0, 0),
        PhaseReport("session", 2.0, 0),
        PhaseReport("scan", 2.0, 100_000_000),
        PhaseReport("rewrite", 2.0, 60_000_000),
        PhaseReport("swap", 2.0, 100_000_000),
    )
    lines = [line.split() for line in shown(replace(report(log(0)), phases=phases))]
    at = lines.index("phase seconds read MB/s".split())
    assert lines[at + 1 : at + 6] == [
        "first use 30.00".split(),
        "start engine 2.00".split(),
        "scan 2.00 100.0 MB 50.0".split(),
        "rewrite 2.00 60.0 MB".split(),
        "swap 2.00 100.0 MB".split(),
    ]


def test_a_wide_terminal_has_a_column_for_each_reason() -> None:
    lines = shown(report(log(0)), 140)
    assert "dropped  superseded  tombstone  null key" in lines[2]
    [row] = [line for line in lines if "orders-0" in line]
    assert row.split() == ("orders-0 0–900 7 → 2 5.0 MB → 2.0 MB 1,000 → 400 600 580 15 5".split())


@pytest.mark.parametrize("width", [40, 80, 111, 112, 140])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    logs = [log(n, topic="a-topic-with-a-name-of-some-length") for n in range(3)]
    logs += [log(n, PASSED, "because " * 30) for n in range(3)]
    assert max(map(len, shown(report(*logs), width))) <= width


@pytest.mark.parametrize("width", [80, 140])
def test_no_name_is_broken_in_the_middle(width: int) -> None:
    """Nor a path: it stands in a line of its own, as a whole to be copied."""
    topic = "eu-west-1.payments.ledger-of-everything-that-was-ever-booked." + "x" * 120
    gone = RetentionReport(time=SegmentCounts(3, 2500), log_start_offset=44)
    told = [
        replace(log(0, topic=topic), retention=gone),
        log(1),
        log(2, FAILED, f"no space left on /data/{topic}-2/00000000000000000000.log", topic),
        log(3, PASSED, "new", topic),
    ]
    warned = replace(report(*told), warnings=(f"/data/{topic}-9 is not looked at",))
    lines = shown(warned, width)
    assert f"/data/{topic}-9" in lines
    assert lines.count(f"{topic}-0") == 2  # what was cleaned, and what retention deleted
    assert f"   /data/{topic}-2/00000000000000000000.log" in lines
    assert [line for line in lines if f"{topic}-3" in line] == [f"   {topic}-3"]


def test_of_several_log_directories_each_log_is_told_by_its_path() -> None:
    """Those of several brokers may have logs of the same name."""
    lines = shown(report(log(0), replace(log(0), log_dir="/disk 2")), 80)
    assert [line.split("  ")[0] for line in lines if "orders-0" in line] == [
        "/data/orders-0",
        "/disk 2/orders-0",
    ]


def test_reasons_of_transactions_are_shown_where_there_are_some() -> None:
    counts = replace(COUNTS, dropped_aborted=1234, dropped_marker=7)
    one = report(log(0), replace(log(1), counts=counts))
    lines = shown(one, 140)
    assert "superseded  tombstone  null key  aborted  marker" in lines[2]
    assert [line.split()[-2:] for line in lines if line.startswith("orders")] == [
        ["0", "0"],
        ["1,234", "7"],
    ]
    assert max(map(len, shown(one, 131))) <= 131
    assert lines[-4] == (
        "Records dropped: 1,160 superseded, 30 tombstone, 10 null key, 1,234 aborted, 7 marker."
    )


def test_where_all_went_for_one_reason_it_has_no_column() -> None:
    one = replace(log(0), counts=replace(COUNTS, dropped_tombstone=0, dropped_null_key=0))
    assert "superseded" not in shown(report(one), 140)[2]


def test_several_logs_have_a_total() -> None:
    [total] = [line for line in shown(report(log(0), log(1)), 140) if line.startswith("total")]
    assert total.split() == "total 14 → 4 10.0 MB → 4.0 MB 2,000 → 800 1,200 1,160 30 10".split()


def test_a_note_is_shown_once_with_the_logs_that_it_is_of() -> None:
    noted = [replace(log(n), notes=("one", "two") if n == 4 else ("one",)) for n in range(5)]
    lines = shown(report(*noted))
    assert "orders-0, orders-1, orders-2 and 2 more: one" in lines
    assert "orders-4: two" in lines


def test_retention_leaves_room_for_names_at_80_columns() -> None:
    """C-18.1: a rule by which nothing goes has no column."""
    gone = RetentionReport(time=SegmentCounts(3, 2500), log_start_offset=44)
    logs = replace(log(0, topic="a-name-of-24-characters-"), retention=gone), log(1)
    lines = shown(report(*logs))
    at = lines.index("Deleted by retention")
    headings, row = lines[at + 1].split("  "), lines[at + 2].split()
    assert [heading.strip() for heading in headings if heading.strip()] == [
        "log", "by time", "segments", "bytes", "log starts at",
    ]  # fmt: skip
    assert row == ["a-name-of-24-characters--0", "3", "3", "2.5", "kB", "44"]


def test_a_dry_run_says_so() -> None:
    lines = shown(report(log(0, LogStatus.WOULD_CLEAN), dry_run=True))
    assert lines[0].startswith("Dry run, nothing was written")
    assert lines[-2] == ("Logs: 1 would be cleaned. 5.0 MB → 2.0 MB, 60.0% would go, in 4.0 s.")


@pytest.mark.parametrize(
    ("dry_run", "words"), [(False, "grown by 2.2% (batches"), (True, "would grow by 2.2% (batches")]
)
def test_logs_that_grow_are_said_to_and_why(dry_run: bool, words: str) -> None:
    status = LogStatus.WOULD_CLEAN if dry_run else LogStatus.CLEANED
    grown = replace(log(0, status), bytes_before=1_000_000, bytes_after=1_022_000)
    said = " ".join(shown(report(grown, dry_run=dry_run), 300))
    assert words in said and "better than Kafka's cleaner does), in 4.0 s." in said


def test_an_empty_round() -> None:
    assert shown(report())[-1] == "Logs: none found. 4.0 s."


def test_logs_that_were_not_cleaned_are_shown_with_their_reasons() -> None:
    lines = shown(report(log(0, FAILED, "disk full"), log(1, ASIDE, "bad"), log(2, PASSED, "new")))
    text = "\n".join(lines)
    assert "Set aside or failed\n1  failed: disk full\n   orders-0" in text
    assert "1  bad\n   orders-1" in text
    assert "Passed over\n1  new\n   orders-2" in text


def test_a_reason_comes_with_what_to_do() -> None:
    """Also what `explain` never meets; nothing where nothing has to be done."""
    locked_out = replace(log(0, FAILED, "x"), reason_code=ReasonCode.INPUT_OUTPUT)
    young = replace(log(1, PASSED, "y"), reason_code=ReasonCode.ACTIVE_SEGMENT)
    clean = replace(log(2, PASSED, "z"), reason_code=ReasonCode.NOTHING_NEW)
    text = "\n".join(shown(report(locked_out, young, clean)))
    assert "failed: x\n   orders-0\n   → look at the disk, and run again\n" in text
    assert "→ wait for a new segment, or begin one: compactor log roll" in text
    assert text.count("→ ") == 2


def test_ten_thousand_logs_do_not_flood_the_terminal() -> None:
    logs = [log(n, PASSED, "cleanup.policy is delete") for n in range(8000)]
    logs += [log(n) for n in range(2000)]
    logs += [log(n, ASIDE, f"reason {chr(97 + n % 26)}{chr(97 + n // 26)}") for n in range(100)]
    lines = shown(report(*logs))
    assert len(lines) < SHOWN_LOGS + 3 * SHOWN_REASONS + 40
    assert "8,000  cleanup.policy is delete" in lines
    assert "       orders-0, orders-1, orders-2 and 7,997 more" in lines
    assert any(line.endswith("and 1,960 more (all: --report FILE.json)") for line in lines)
    assert any("for other reasons" in line for line in lines)


def test_names_cannot_move_the_cursor_or_colour_the_text() -> None:
    """A directory can be called anything: control characters, and markup of the table's library."""
    topic = "[red]x[/]\x1b[2J\u202e"
    told = log(0, topic=topic), log(0, ASIDE, f"in {topic}", topic)
    text = "\n".join(shown(report(*told), 140))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]x[/]\\x1b[2J\\u202e-0" in text
