"""Whether a round may be believed: pure checks of what the tasks say they read, decided and wrote.

The scan says how many records may survive and gives the sum of their fingerprints; the resolve
takes away what it dropped; what is read back from the written segments must give the same. An
error anywhere in between, a bitmap applied to the wrong part for one, changes one of the sums.
"""

import os
from collections import defaultdict
from collections.abc import Sequence

from cleaner_jobs.plan import LogPlan
from cleaner_jobs.task_values import Part, Rewritten, Verdict
from compactor.transactions import Decisions
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name

FINGERPRINT_RANGE = 1 << 64


def why_scan_is_incomplete(plan: LogPlan, parts: Sequence[Part]) -> str | None:
    """Say what is wrong with the parts of a log; None if they cover it, once, in order."""
    position: dict[tuple[int, int], int] = defaultdict(int)  # how far each segment was read
    for group, section in ((part.group, section) for part in parts for section in part.sections):
        segment = plan.groups[group].segments[section.segment]
        if section.start != position[group, section.segment]:
            return f"segment {segment.base_offset} was not read in order, at byte {section.start}"
        position[group, section.segment] = section.end
    for group, of_group in enumerate(plan.groups):
        for index, segment in enumerate(of_group.segments):
            if position[group, index] != segment.log_bytes:
                return f"segment {segment.base_offset} was read to byte {position[group, index]}"
    return None


def check_offsets(plan: LogPlan, parts: Sequence[Part]) -> None:
    """Raise CorruptFileError where segments overlap, or a record is not below the range's end.

    No checksum covers the offset of a batch. The position is where the section begins that was read
    in one go: it has such a batch.
    """
    offset, end = -1, plan.first_uncleanable_offset
    for part in parts:
        for section in part.sections:
            segment = plan.groups[part.group].segments[section.segment]
            first, last = section.first_offset, section.last_offset
            problem = None
            if first <= offset:
                problem = f"offset {first} is not above {offset}, the last one before it"
            elif last >= end:
                problem = f"offset {last} is not below {end}, where the range to clean ends"
            if problem is not None:
                path = os.path.join(plan.path, file_name(segment.base_offset, LOG))
                raise CorruptFileError(path, section.start, problem)
            offset = last


def expected_kept(parts: Sequence[Part], verdicts: Sequence[Verdict]) -> int:
    """How many records of a log stay."""
    candidates = sum(part.candidates for part in parts)
    return candidates - sum(verdict.superseded + verdict.expired for verdict in verdicts)


def why_result_is_wrong(
    parts: Sequence[Part],
    verdicts: Sequence[Verdict],
    pieces: Sequence[Rewritten],
    measured_only: bool,
) -> str | None:
    """Say how the written segments of a log differ from what was resolved; None if they do not.

    measured_only: of a dry run, which leaves nothing to read back but the counts.
    """
    partitions = 1 << parts[0].partition_bits if parts else 0
    if sorted(verdict.partition for verdict in verdicts) != list(range(partitions)):
        return f"not each of {partitions} hash partitions was resolved once"
    lost = {part.group for part in parts} - {piece.group for piece in pieces}
    if lost:  # it could have had no record to keep
        return f"segment group {min(lost)} was not rewritten"
    expected = expected_kept(parts, verdicts)
    found = sum(piece.records_kept for piece in pieces)
    if expected != found:
        return f"{expected} records were to stay, {found} are in the cleaned segments"
    if measured_only:
        return None
    fingerprints = sum(part.candidate_fingerprints for part in parts)
    fingerprints -= sum(verdict.dropped_fingerprints for verdict in verdicts)
    fingerprints -= sum(piece.kept_fingerprints for piece in pieces)
    if fingerprints % FINGERPRINT_RANGE:
        return "the cleaned segments hold other records than those that were to stay"
    return None


def why_markers_are_wrong(
    parts: Sequence[Part], decisions: Decisions | None, pieces: Sequence[Rewritten]
) -> str | None:
    """Say how the control records that were written differ from those that were to stay."""
    expected = sum(part.control_records for part in parts)
    if decisions is not None:
        expected -= decisions.control_records_dropped
    found = sum(piece.control_records_kept for piece in pieces)
    if expected != found:
        return f"{expected} control records were to stay, {found} are in the cleaned segments"
    return None
