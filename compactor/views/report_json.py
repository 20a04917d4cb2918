"""A round's report and summary as JSON, for programs that run the command on a schedule.

The report is one object. It begins with the fields of the summary, so that with `--format json`
the single line on standard output is both: the whole report, and the last line with status and
exit code. `schema_version` rises when a field changes its meaning or goes; new fields may come at
any time.
"""

import json
from typing import Any

from compactor.host.printable import iso_time, printable
from compactor.host.progress import START_STAGE
from compactor.outcome.exit_codes import ExitCode, ending_of_report
from compactor.outcome.json_values import to_json
from compactor.outcome.round_report import (
    FIRST_USE,
    REPORT_SCHEMA_VERSION,
    SESSION,
    SESSION_END,
    WHY_LOGS_GROW,
    CleaningReport,
    Counts,
    LogReport,
    LogSections,
    LogStatus,
    PhaseReport,
    RetentionReport,
)
from compactor.reason_codes import ReasonCode, missing_first
from compactor.views.report_totals import dropped_by_reason, totals_of

JsonObject = dict[str, Any]
_RATED = ("scan", "rewrite", "copy")
FEWEST_RATED_BYTES = 64 << 20
_PHASE_WORDS = {  # of Spark: of Java, and Python's workers
    FIRST_USE: "first use",
    SESSION: START_STAGE,
    SESSION_END: "end Spark",
}


def to_line(document: JsonObject) -> str:
    """One line of pure ASCII: names that are not UTF-8 come out escaped."""
    return json.dumps(document, separators=(",", ":"))


def to_text(document: JsonObject) -> str:
    return json.dumps(document, indent=2) + "\n"


def summary(
    command: str,
    code: ExitCode,
    error: str | None = None,
    reason_code: ReasonCode = ReasonCode.DONE,
) -> JsonObject:
    """What every summary begins with; error is the line that a person was shown."""
    document: JsonObject = {
        "schema_version": REPORT_SCHEMA_VERSION,
        "command": command,
        **ending(code, reason_code),
    }
    return document if error is None else document | {"error": error}


def ending(code: ExitCode, reason_code: ReasonCode) -> JsonObject:
    """How a command ended."""
    return {"status": code.status, "exit_code": int(code), "reason_code": reason_code.value}


def report_summary(report: CleaningReport) -> JsonObject:
    """The summary of a round that came to its end."""
    totals = totals_of(report)
    code, why = ending_of_report(report)
    return summary("run", code, reason_code=why) | {
        "dry_run": report.dry_run,
        "run_id": report.run_id,
        "seconds": round(report.seconds, 3),
        "originals": to_json(report.originals),
        "copies": to_json(report.copies),
        "totals": {
            "logs": {status.value: totals.logs.get(status, 0) for status in LogStatus},
            "segments_before": totals.segments_before,
            "segments_after": totals.segments_after,
            "bytes_before": totals.bytes_before,
            "bytes_after": totals.bytes_after,
            **_counts(totals.counts),
            "retention": _retention(totals.retention),
        },
    }


def report_document(report: CleaningReport) -> JsonObject:
    """Return everything that is known of the round."""
    return report_summary(report) | {
        "version": report.version,
        "as_of_ms": report.as_of_ms,
        "as_of": iso_time(report.as_of_ms),
        "horizons_from_ms": (
            report.as_of_ms if report.horizons_from_ms is None else report.horizons_from_ms
        ),
        "started_at_ms": report.started_at_ms,
        "started_at": iso_time(report.started_at_ms),
        "warnings": list(report.warnings),
        "notices": list(report.notices),
        "start_problems": to_json(report.start_problems),
        "phases": [_phase(phase) for phase in report.phases],
        "logs": [_log(log) for log in missing_first(report.logs)],
    }


def _log(log: LogReport) -> JsonObject:
    return {
        "log_dir": log.log_dir,
        "topic": log.topic,
        "partition": log.partition,
        "status": log.status.value,
        "reason": log.reason,
        "reason_code": log.reason_code,
        **_sections(log.sections),
        "notes": [*log.notes, *_why_it_grew(log)],
        "first_dirty_offset": log.first_dirty_offset,
        "first_uncleanable_offset": log.first_uncleanable_offset,
        "end_offset": log.end_offset,
        "delete_retention_ms": log.delete_retention_ms,
        "segments_before": log.segments_before,
        "segments_after": log.segments_after,
        "bytes_before": log.bytes_before,
        "bytes_after": log.bytes_after,
        **_counts(log.counts),
        "retention": retention_document(log.retention),
    }


def _why_it_grew(log: LogReport) -> list[str]:
    is_cleaned = log.status in (LogStatus.CLEANED, LogStatus.WOULD_CLEAN)
    growth = log.bytes_after - log.bytes_before
    return [f"larger by {growth:,} bytes: {WHY_LOGS_GROW}"] if is_cleaned and growth > 0 else []


def _sections(sections: LogSections | None) -> JsonObject:
    if sections is None:
        return {"total_bytes": None, "clean_bytes": None, "dirty_bytes": None, "held_bytes": None}
    return {**to_json(sections)}


def retention_document(retention: RetentionReport) -> JsonObject:
    """Return what retention deletes of a log, and where the log starts then (null: as before)."""
    return {"log_start_offset": retention.log_start_offset, **_retention(retention)}


def _retention(retention: RetentionReport) -> JsonObject:
    return {
        "log_start": to_json(retention.log_start),
        "size": to_json(retention.size),
        "time": to_json(retention.time),
    }


def _counts(counts: Counts) -> JsonObject:
    return {
        "records": {
            "read": counts.records_read,
            "kept": counts.records_kept,
            "dropped": dropped_by_reason(counts),
        },
        "batches": {
            "read": counts.batches_read,
            "kept": counts.batches_kept,
            "rebuilt": counts.batches_rebuilt,
            "emptied": counts.batches_emptied,
        },
    }


def _phase(phase: PhaseReport) -> JsonObject:
    return {
        "name": phase.name,
        "seconds": round(phase.seconds, 3),
        "log_bytes": phase.log_bytes,
        "mb_per_second": mb_per_second(phase),
    }


def phase_name(name: str) -> str:
    """Return the name of a phase for a person, printable."""
    return _PHASE_WORDS.get(name) or printable(name)


def mb_per_second(phase: PhaseReport) -> float | None:
    """Return megabytes (10^6) of .log a second.

    None for a phase that works through none of them, as renames and the resolving of keys, and for
    one of so few that what is measured is the start of the workers.
    """
    if phase.name not in _RATED or phase.log_bytes < FEWEST_RATED_BYTES or phase.seconds <= 0:
        return None
    return round(phase.log_bytes / 1e6 / phase.seconds, 1)
