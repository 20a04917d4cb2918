"""Bring each cleaner-offset-checkpoint up to date after the swaps (C-17.1, C-4.2, C-4.3).

1. entries for logs that are in another log directory go     a partition is named in one file only
2. entries of cleaned logs, and repairs, are written          the next round goes on from them

The order is safe: a log that no file names is dirty from its start on; a log that two files name
ends the cleaner thread of a broker. Entries of partitions that do not exist any more are dropped,
as a broker drops them.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from compactor.outcome.round_report import LogKey, LogReport, LogStatus
from compactor.planning.round_plan import RoundPlan
from compactor.reason_codes import ReasonCode, error_text
from storage.errors import CorruptFileError
from storage.files.disk_hints import retry_with_freed_space
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.formats.checkpoint import TopicPartition

_LEFT_ALONE = (LogStatus.FAILED, LogStatus.SET_ASIDE)


def write_checkpoints(
    plan: RoundPlan, reports: Sequence[LogReport], disk: Disk = LOCAL
) -> list[LogReport]:
    """Write what the reports on all logs of the plan call for.

    Returns the reports. A log whose entry cannot be written has failed: what was cleaned stays,
    and is cleaned again by the next round. So has one in whose place another directory stands: an
    entry would be taken for that one's.
    """
    reports = [_failed(report, _why_not_in_place(disk, report)) for report in reports]
    left_alone = {report.key for report in reports if report.status in _LEFT_ALONE}
    news: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
    stale: dict[str, dict[TopicPartition, str]] = defaultdict(dict)  # to where the log stands
    for entry in plan.stray_entries:
        key = entry.topic, entry.partition
        if (entry.log_dir, *key) not in left_alone:
            news[entry.log_dir][key] = entry.offset
            for log_dir in entry.found_in:
                stale[log_dir][key] = entry.log_dir
    for log_dir, repairs in plan.checkpoint_repairs.items():
        news[log_dir].update(repairs)
    for report in reports:
        if report.status is LogStatus.CLEANED:
            assert report.end_offset is not None
            key = report.topic, report.partition
            news[report.log_dir][key] = report.end_offset
    failed: dict[LogKey, str] = {}
    for log_dir, keys in stale.items():
        problem = _write_entries(disk, log_dir, keys.keys(), {})
        for key, own in keys.items() if problem else ():
            news[own].pop(key, None)  # it would be named twice
            failed[own, *key] = problem
    for log_dir, added in news.items():
        problem = _write_entries(disk, log_dir, set(), added) if added else ""
        failed.update({(log_dir, *key): problem for key in added if problem})
    return [_failed(report, failed.get(report.key, "")) for report in reports]


def add_stray_notes(plan: RoundPlan, reports: Iterable[LogReport]) -> list[LogReport]:
    """The reports, with a note on each log whose entry stood in another log directory."""
    notes = {entry.key: entry.note for entry in plan.stray_entries}
    return [
        replace(report, notes=(*report.notes, notes[report.key]))
        if report.key in notes and report.status not in _LEFT_ALONE
        else report
        for report in reports
    ]


def _why_not_in_place(disk: Disk, report: LogReport) -> str:
    if report.status is not LogStatus.CLEANED:
        return ""
    path = os.path.join(report.log_dir, f"{report.topic}-{report.partition}")
    try:
        disk.require_unchanged(path)
    except OSError as error:
        return error_text(error)
    return ""


def _write_entries(
    files: Files, log_dir: str, gone: Set[TopicPartition], added: Mapping[TopicPartition, int]
) -> str:
    """Take entries out of the cleaner checkpoint of a log directory, or put some in; "" if done."""
    path = os.path.join(log_dir, checkpoint.CLEANER_OFFSET)
    try:
        entries = checkpoint.read(path, files)
        entries = {key: offset for key, offset in entries.items() if key not in gone}
        if added:
            hosted = filter(lambda key: _is_hosted(files, log_dir, key), entries)
            entries = {key: entries[key] for key in hosted}
        retry_with_freed_space(lambda: checkpoint.write(path, {**entries, **added}, files))
    except (CorruptFileError, OSError) as error:
        return error_text(error)
    return ""


def _is_hosted(files: Files, log_dir: str, key: TopicPartition) -> bool:
    topic, partition = key
    return files.is_directory(os.path.join(log_dir, f"{topic}-{partition}"))


def _failed(report: LogReport, problem: str) -> LogReport:
    if not problem:
        return report
    done = "cleaned, but the" if report.status is LogStatus.CLEANED else "the"
    reason = f"{done} cleaner checkpoint was not written: {problem}"
    code = ReasonCode.NOT_FINISHED
    return replace(report, status=LogStatus.FAILED, reason=reason, reason_code=code)
