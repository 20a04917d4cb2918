"""Split segments that hold offsets too far from their base offset, before a log is cleaned.

Brokers before 1.1 made such segments when they merged across gaps (KAFKA-6264). Kafka's cleaner
meets one when an append fails: it splits the segment, gives up the round, and cleans in a later
one. A run of ours splits first, then plans the log again and cleans it. Source: Kafka,
Cleaner.cleanSegments; spec C-16.1, C-16.2.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cleaner_jobs.messages import LogPlan, Source
from cleaner_jobs.problems import problem_of
from cleaner_jobs.source_identity import LogChangedError
from compactor.outcome.round_report import LogReport, LogStatus
from compactor.planning.layout import sources_of
from compactor.planning.round_plan import RoundPlan
from compactor.planning.skipped_logs import problem_report, untouched_report
from storage.errors import CorruptFileError
from storage.file_names import MAX_RELATIVE_OFFSET
from storage.files.files import Disk, Files
from storage.files.local import LOCAL
from storage.log.segment_reader import read_batch_headers

if TYPE_CHECKING:
    from compactor.originals.originals_keeper import OriginalsKeeper

SPLIT_NOTE = (
    "{} {} split first, because it holds offsets more than 2,147,483,647 above its base offset"
)


class Splitting(NamedTuple):
    """How segments are split."""

    dry_run: bool = False  # only report what would be
    originals: "OriginalsKeeper | None" = None  # keeps what is split
    before: Callable[[], object] = lambda: None  # called before a segment is split
    disk: Disk = LOCAL


def split_overflowing(
    plan: RoundPlan, plan_again: Callable[[], RoundPlan], splitting: Splitting
) -> RoundPlan:
    """The plan without such segments: they are split or, in a dry run, only reported.

    A log that cannot be split is left as it is, with a reason. The caller holds the locks of the
    log directories, unless the run is dry.
    """
    not_cleaned: dict[str, LogReport] = {}
    split: dict[str, tuple[str, ...]] = {}
    for log in plan.logs:
        try:
            sources = overflowing(log, splitting.disk)
            verb = "would be" if splitting.dry_run else "was"
            notes = tuple(SPLIT_NOTE.format(os.path.basename(s.path), verb) for s in sources)
            if sources and splitting.dry_run:
                not_cleaned[log.path] = _would_split(log, notes)
            elif sources:
                from compactor.cleaning.segment_split import (
                    split_segment,  # with kernels that few need
                )

                splitting.before()
                for source in sources:
                    split_segment(log, source, splitting.originals, splitting.disk)
                split[log.path] = notes
        except (CorruptFileError, LogChangedError, OSError) as error:
            not_cleaned[log.path] = problem_report(log, problem_of(log.log_id, error))
    if split:
        plan = plan_again()
    logs = [
        replace(log, notes=(*log.notes, *split.get(log.path, ())))
        for log in plan.logs
        if log.path not in not_cleaned
    ]
    return replace(plan, logs=tuple(logs), not_cleaned=(*plan.not_cleaned, *not_cleaned.values()))


def overflowing(log: LogPlan, files: Files = LOCAL) -> list[Source]:
    """The segments of a log that hold such an offset.

    None can where the next segment's base offset is near enough: only elsewhere is one read.
    """
    sources = [source for of_group in sources_of(log) for source in of_group]
    ends = [*(source.base_offset for source in sources[1:]), log.first_uncleanable_offset]
    return [
        source
        for source, end in zip(sources, ends, strict=True)
        if end - 1 - source.base_offset > MAX_RELATIVE_OFFSET and _overflows(files, source)
    ]


def _overflows(files: Files, source: Source) -> bool:
    return any(
        header.last_offset - source.base_offset > MAX_RELATIVE_OFFSET
        for _, header in read_batch_headers(source.path, 0, source.log_bytes, files)
    )


def _would_split(log: LogPlan, notes: tuple[str, ...]) -> LogReport:
    return replace(
        untouched_report(log, LogStatus.WOULD_CLEAN),
        segments_after=log.segment_count + len(notes),
        notes=(*notes, "a dry run does not count the records that would go after the split"),
    )
