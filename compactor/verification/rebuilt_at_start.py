"""Which findings are of indexes that a broker rebuilds when it starts (F-16.1).

It recovers a segment without an offset index, always; after an unclean shutdown each one from the
recovery point on, too. Then all of its indexes are rebuilt from its log.
"""

import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from compactor.broker_start.loading import options_at_start
from compactor.log_checks.findings import Finding
from compactor.log_checks.segment_checks import MISSING, check_segment
from storage.errors import CorruptFileError, LogCompactionError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name, offset_of
from storage.files.files import Files
from storage.files.overlay import OverlayFiles
from storage.formats import checkpoint, clean_shutdown
from storage.log.errors import LogError
from storage.log.log import Log
from storage.log.log_dir import PartitionListing, list_partition

REBUILT = "; a broker that starts here rebuilds it"


class Mended(NamedTuple):
    """What a broker's start does with the indexes that have findings."""

    findings: list[Finding]  # the same, with what it does with each
    rebuilt: frozenset[str]  # paths of indexes that it rebuilds
    to_remove: frozenset[str]  # of indexes that it rebuilds once they are removed


def mended_at_start(
    log_dir: str,
    partitions: Sequence[PartitionListing],
    findings: Sequence[Finding],
    files: Files,
) -> Mended:
    """Look at the findings of a log directory."""
    rebuilt = _rebuilt(log_dir, partitions, findings, files)
    others = [each for each in findings if each.path not in rebuilt]
    noted = [
        each._replace(problem=each.problem + REBUILT)
        if each.path in rebuilt and each.problem != MISSING
        else each
        for each in findings
    ]
    return Mended(noted, rebuilt, _to_remove(log_dir, partitions, others, files))


def _rebuilt(
    log_dir: str,
    partitions: Sequence[PartitionListing],
    findings: Sequence[Finding],
    files: Files,
) -> frozenset[str]:
    """Return the paths of wrong indexes that a starting broker rebuilds.

    None of a log whose records are not sound.
    """
    wrong = {finding.path for finding in findings}
    if not any(path.endswith((INDEX, TIME_INDEX, TXN_INDEX)) for path in wrong):
        return frozenset()
    points = _recovery_points(log_dir, files)
    return frozenset(
        path
        for partition in partitions
        for path in _rebuilt_of(partition, points, wrong, files)
        if path in wrong
    )


def _recovery_points(log_dir: str, files: Files) -> dict[tuple[str, int], int] | None:
    """Return recovery points; None after a clean shutdown, or where they are unknown."""
    if clean_shutdown.exists(log_dir, files):
        return None
    try:
        return checkpoint.read(os.path.join(log_dir, checkpoint.RECOVERY_POINT), files)
    except (CorruptFileError, OSError):
        return None


def _rebuilt_of(
    partition: PartitionListing,
    points: dict[tuple[str, int], int] | None,
    wrong: Collection[str],
    files: Files,
) -> Iterator[str]:
    def path(base_offset: int, suffix: str) -> str:
        return os.path.join(partition.path, file_name(base_offset, suffix))

    bases = [segment.base_offset for segment in partition.segments]
    if any(path(base, LOG) in wrong for base in bases):
        return  # a start may cut the log off there
    first = len(bases)  # of the segments that an unclean shutdown makes a start recover
    if points is not None:
        point = points.get((partition.topic, partition.partition), 0)
        first = max(bisect_right(bases, point) - 1, 0)
    for number, base in enumerate(bases):
        if number >= first or not files.exists(path(base, INDEX)):
            yield from (path(base, suffix) for suffix in (INDEX, TIME_INDEX, TXN_INDEX))


def _to_remove(
    log_dir: str,
    partitions: Sequence[PartitionListing],
    findings: Sequence[Finding],
    files: Files,
) -> frozenset[str]:
    """Give the paths of indexes without which a start makes sound ones, and that are not so now.

    Done really, on an overlay: they are removed, a broker's loader loads the log, and what has come
    of it is checked. None of a log of which anything else is wrong, or stays so.
    """
    by_log: dict[str, set[str]] = {}
    for finding in findings:
        by_log.setdefault(os.path.dirname(finding.path), set()).add(finding.path)
    found: set[str] = set()
    for partition in partitions:
        wrong = by_log.get(partition.path, set())
        if wrong and all(path.endswith((INDEX, TIME_INDEX, TXN_INDEX)) for path in wrong):
            found |= _sound_without(log_dir, partition, wrong, files)
    return frozenset(found)


def _sound_without(
    log_dir: str, partition: PartitionListing, wrong: Collection[str], files: Files
) -> set[str]:
    bases = {offset_of(os.path.basename(path)) for path in wrong}
    removed = {
        path
        for base in bases
        for suffix in (INDEX, TIME_INDEX)  # it rebuilds both where the first is missing
        if files.exists(path := os.path.join(partition.path, file_name(base or 0, suffix)))
    }
    with (
        closing(OverlayFiles(files, is_alone=True)) as seen,
        suppress(LogCompactionError, LogError, OSError),
    ):
        for path in removed:
            seen.remove(path)
        starts = checkpoint.read(os.path.join(log_dir, checkpoint.LOG_START), files)
        log_start = starts.get((partition.topic, partition.partition), 0)
        is_clean = clean_shutdown.exists(log_dir, files)
        options = options_at_start(log_start, 0, seen, is_clean)
        with Log.open(partition.path, options) as log:  # as a broker that starts and stops
            log.prepare_for_close()
        name = partition.topic, partition.partition
        after = list_partition(partition.path, *name, seen, with_files=False)
        sizes = [(segment.base_offset, segment.log_bytes) for segment in partition.segments]
        is_same = sizes == [(each.base_offset, each.log_bytes) for each in after.segments]
        following = [segment.base_offset for segment in after.segments[1:]]
        is_sound = is_same and not any(
            check_segment(after.path, segment, next_base, seen)[0]
            for segment, next_base in zip(after.segments, [*following, None], strict=True)
        )
        return removed if is_sound else set()
    return set()
