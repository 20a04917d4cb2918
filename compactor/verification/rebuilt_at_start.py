"""Which findings are of indexes that a broker rebuilds when it starts (F-16.1).

It recovers a segment without an offset index, always; after an unclean shutdown each one from the
recovery point on, too. Then all of its indexes are made anew from its log.
"""

import os
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from compactor.verification.verify_batches import Finding
from storage.errors import CorruptFileError
from storage.file_names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from storage.files.files import Files
from storage.files.local import LOCAL
from storage.formats import checkpoint, clean_shutdown
from storage.log.log_dir import PartitionListing

REBUILT = "; a broker that starts here rebuilds it"


def rebuilt_at_start(
    log_dir: str,
    partitions: Sequence[PartitionListing],
    findings: Sequence[Finding],
    files: Files = LOCAL,
) -> frozenset[str]:
    """Give the paths of such indexes; none of a log whose records are not sound."""
    wrong = {finding.path for finding in findings}
    if not any(path.endswith((INDEX, TIME_INDEX, TXN_INDEX)) for path in wrong):
        return frozenset()
    points = _recovery_points(log_dir, files)
    return frozenset(
        path
        for partition in partitions
        for path in _rebuilt(partition, points, wrong, files)
        if path in wrong
    )


def _recovery_points(log_dir: str, files: Files) -> dict[tuple[str, int], int] | None:
    """None where the shutdown was clean, or where nobody can tell what a start recovers."""
    if clean_shutdown.exists(log_dir, files):
        return None
    try:
        return checkpoint.read(os.path.join(log_dir, checkpoint.RECOVERY_POINT), files)
    except (CorruptFileError, OSError):
        return None


def _rebuilt(
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
