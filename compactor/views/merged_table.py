"""Reports of several hosts as one table, and as one document."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, one_line, printable, size_text
from compactor.outcome.json_values import IN_SUMMARY, written
from compactor.views.fitting_table import Column, table_lines
from compactor.watching.merged_reports import (
    Document,
    MergedReports,
    OneReport,
    bad_logs_of,
    log_dirs_of,
    of_each,
)

_COLUMNS = (
    Column("host", 1, is_text=True),
    Column("command", 3, is_text=True),
    Column("status", 0, is_text=True),
    Column("logs", 4),
    Column("freed", 2),
    Column("seconds", 5),
)
SHOWN_LOGS = 10  # of a report, of those that were set aside or failed
_SUCCESS = (0, 5)


def merged_view(merged: MergedReports, width: int) -> RenderableType:
    """Return a row for each report, where each is from, what went wrong, and the sum."""
    rows = [_cells(document) for _, document in merged.reports]
    errors = []
    for path, document in merged.reports:
        named = f"{printable(document['host'])} ({printable(path)})"
        log_dirs = ", ".join(printable(str(each)) for each in log_dirs_of(document))
        errors.append(Text(f"{named}: {log_dirs or 'names no log directory'}"))
        if document.get("error"):
            errors.append(Text(f"{named}: {one_line(document['error'])}"))
        bad = bad_logs_of(document)
        errors += [Text(f"  {_bad_log(log)}") for log in bad[:SHOWN_LOGS]]
        if bad[SHOWN_LOGS:]:
            errors.append(Text(f"  and {counted(len(bad) - SHOWN_LOGS, 'more log')}"))
    total = f"{counted(len(merged.reports), 'report')}: {_sum_of(merged.reports)}"
    return Group(*table_lines("started (UTC)", _COLUMNS, rows, width), *errors, Text(total))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedReportsDocument:
    """Several reports, and what they come to."""

    changed: bool = field(metadata=written(is_of_ending=True, is_in_summary=True))
    totals: dict[str, Any] = field(metadata=IN_SUMMARY)
    reports: list[OneReport]


def merged_document(merged: MergedReports) -> MergedReportsDocument:
    """Return the fields that follow those of the summary."""
    reports = [of_each(path, document) for path, document in merged.reports]
    return MergedReportsDocument(changed=merged.is_changed, totals=merged.totals, reports=reports)


def _bad_log(log: Document) -> str:
    place = f"{log.get('log_dir')}/{log.get('topic')}-{log.get('partition')}"
    return f"{printable(place)} {printable(str(log['status']))}: {one_line(str(log.get('reason')))}"


def _cells(document: Document) -> list[str]:
    status = f"{document['status']}"
    if document["exit_code"] not in _SUCCESS:
        status += f" ({document['reason_code']})"
    totals = document.get("totals") or {}
    seconds = document.get("seconds")
    dry = " --dry-run" if document.get("dry_run") else ""
    return [
        printable(str(document.get("started_at", ""))[:19].replace("T", " ")),
        printable(str(document["host"])),
        printable(f"{document['command']}{dry}"),
        printable(status),
        f"{_cleaned(totals):,}" if "logs" in totals else "",
        size_text(_freed(totals)) if "bytes_before" in totals else "",
        f"{seconds:,.1f}" if isinstance(seconds, (int, float)) else "",
    ]


def _sum_of(reports: Sequence[tuple[str, Document]]) -> str:
    """Return the sum of what was done; a dry run has done nothing."""
    done = [
        document["totals"]
        for _, document in reports
        if "bytes_before" in (document.get("totals") or {}) and not document.get("dry_run")
    ]
    logs, freed = sum(map(_cleaned, done)), sum(map(_freed, done))
    if not logs:
        return "none of them has cleaned anything"
    return f"{counted(logs, 'log')} cleaned, {size_text(freed)} freed"


def _cleaned(totals: Document) -> int:
    logs = totals.get("logs") or {}
    return int(logs.get("cleaned", 0) + logs.get("would-clean", 0))


def _freed(totals: Document) -> int:
    return int(totals["bytes_before"] - totals["bytes_after"])
