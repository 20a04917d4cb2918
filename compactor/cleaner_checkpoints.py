"""Brings each cleaner-offset-checkpoint up to date after the swaps (C-17.1, C-4.2, C-4.3).

1. entries for logs that stand in another log directory go   a partition is named in one file only
2. entries of cleaned logs, and repairs, are written          the next round goes on from there

In this order: named nowhere a log is dirty from its start on, which is safe; named twice it ends
the cleaner thread of a broker. Entries of partitions that are not there any more are dropped, as a
broker drops them.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from compactor.report import LogReport, LogStatus
from compactor.round_plan import RoundPlan
from storage import checkpoint
from storage.checkpoint import TopicPartition

_LEFT_ALONE = (LogStatus.FAILED, LogStatus.SET_ASIDE)


def write_checkpoints(plan: RoundPlan, reports: Sequence[LogReport]) -> None:
    """Write what the reports on all logs of the plan call for."""
    left_alone = {_name(report) for report in reports if report.status in _LEFT_ALONE}
    news: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
    stale: dict[str, set[TopicPartition]] = defaultdict(set)
    for entry in plan.stray_entries:
        key = entry.topic, entry.partition
        if (entry.log_dir, *key) not in left_alone:
            news[entry.log_dir][key] = entry.offset
            for log_dir in entry.found_in:
                stale[log_dir].add(key)
    for log_dir, repairs in plan.checkpoint_repairs.items():
        news[log_dir].update(repairs)
    for report in reports:
        if report.status is LogStatus.CLEANED:
            assert report.end_offset is not None
            key = report.topic, report.partition
            news[report.log_dir][key] = report.end_offset
    for log_dir, keys in stale.items():
        path = os.path.join(log_dir, checkpoint.CLEANER_OFFSET)
        entries = checkpoint.read(path)
        checkpoint.write(path, {key: entries[key] for key in entries.keys() - keys})
    for log_dir, added in news.items():
        if added:
            _add(log_dir, added)


def noted(plan: RoundPlan, reports: Iterable[LogReport]) -> list[LogReport]:
    """The reports, with a note on each log whose entry stood in another log directory."""
    notes = {
        (entry.log_dir, entry.topic, entry.partition): entry.note for entry in plan.stray_entries
    }
    return [
        replace(report, notes=(*report.notes, notes[_name(report)]))
        if _name(report) in notes and report.status not in _LEFT_ALONE
        else report
        for report in reports
    ]


def _add(log_dir: str, added: dict[TopicPartition, int]) -> None:
    path = os.path.join(log_dir, checkpoint.CLEANER_OFFSET)
    hosted = {
        (topic, partition): offset
        for (topic, partition), offset in checkpoint.read(path).items()
        if os.path.isdir(os.path.join(log_dir, f"{topic}-{partition}"))
    }
    checkpoint.write(path, hosted | added)


def _name(report: LogReport) -> tuple[str, str, int]:
    return report.log_dir, report.topic, report.partition
