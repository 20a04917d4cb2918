"""Check whether a round may be believed, by what its tasks say they read, decided and wrote. Pure.

The scan says how many records of a segment group may survive and gives the sum of their
fingerprints; the resolve takes away what it dropped; what is read back from the written segments
must give the same. An error anywhere in between, a bitmap applied to the wrong part for one,
changes one of the sums. A group is proven before it is swapped in, a log before its checkpoint.

`check_null_keys` guards against compacting what is no compacted topic. Brokers take no record
without a key into a compacted topic, so the few that a cleaner meets are from before its policy
was changed. Where most of what would go has no key, the policy is probably a mistake, and the topic
holds events that nobody meant to lose.
"""

import os
from collections import defaultdict
from collections.abc import Sequence

from cleaner_jobs.messages import FINGERPRINT_RANGE, LogPlan, Part, Rewritten, Verdict
from storage.errors import CorruptFileError
from storage.file_names import LOG, file_name


def check_scan(plan: LogPlan, parts: Sequence[Part]) -> str | None:
    """Say what is wrong with the parts of a log; None if they cover it, once, in order."""
    position: dict[tuple[int, int], int] = defaultdict(int)  # how far each segment was read
    for group, section in ((part.group, section) for part in parts for section in part.sections):
        if not _is_planned(plan, group, section.segment):
            return f"segment {section.segment} of group {group} was read, which is not in the plan"
        segment = plan.groups[group].segments[section.segment]
        if section.start != position[group, section.segment]:
            return f"segment {segment.base_offset} was not read in order, at byte {section.start}"
        position[group, section.segment] = section.end
    for group, of_group in enumerate(plan.groups):
        for index, segment in enumerate(of_group.segments):
            if position[group, index] != segment.log_bytes:
                return f"segment {segment.base_offset} was read to byte {position[group, index]}"
    return None


def require_offsets_in_order(plan: LogPlan, parts: Sequence[Part]) -> None:
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


def check_verdicts(parts: Sequence[Part], verdicts: Sequence[Verdict]) -> str | None:
    """Say which hash partition of a log has no verdict, or two; None if each has one."""
    hash_partitions = 1 << parts[0].hash_partition_bits if parts else 0
    if sorted(verdict.hash_partition for verdict in verdicts) != list(range(hash_partitions)):
        return f"not every one of {hash_partitions} hash partitions was resolved exactly once"
    return None


def check_null_keys(
    parts: Sequence[Part], verdicts: Sequence[Verdict], markers_dropped: int
) -> str | None:
    """Say why a log is not to be cleaned: it is resolved, and nothing of it is rewritten yet."""
    null_keys = sum(part.null_keys for part in parts)
    gone = null_keys + markers_dropped
    gone += sum(part.superseded + part.aborted for part in parts)
    gone += sum(verdict.superseded + verdict.expired for verdict in verdicts)
    if 2 * null_keys <= gone:
        return None
    return (
        f"records without a key: {null_keys:,} of the {gone:,} that would go. A broker accepts no "
        "such record in a compacted topic, so this may not be one. Nothing was changed; "
        "--drop-null-keys cleans it anyway"
    )


def check_group(
    parts: Sequence[Part],
    rewritten: Sequence[Rewritten],
    control_records_dropped: int,
    measured_only: bool,
) -> str | None:
    """Say how the written segments of a group differ from what was resolved; None if they do not.

    parts, rewritten: of this group. measured_only: of a dry run, which leaves nothing to read back
    but the counts.
    """
    expected = sum(part.survivors for part in parts) - sum(piece.dropped for piece in rewritten)
    found = sum(piece.records_kept for piece in rewritten)
    if expected != found:
        return f"records that were to stay: {expected}; in the cleaned segments: {found}"
    expected = sum(part.control_records for part in parts) - control_records_dropped
    found = sum(piece.control_records_kept for piece in rewritten)
    if expected != found:
        return f"control records that were to stay: {expected}; in the cleaned segments: {found}"
    if measured_only:
        return None
    fingerprints = sum(part.survivor_fingerprints for part in parts)
    fingerprints -= sum(piece.dropped_fingerprints for piece in rewritten)
    fingerprints -= sum(piece.kept_fingerprints for piece in rewritten)
    if fingerprints % FINGERPRINT_RANGE:
        return "the cleaned segments hold other records than those that were to stay"
    return None


def check_round(
    groups: int, verdicts: Sequence[Verdict], rewritten: Sequence[Rewritten]
) -> str | None:
    """Say what of a log of so many groups was left out; None if all was done that was resolved."""
    missing = set(range(groups)) - {piece.group for piece in rewritten}
    if missing:
        return f"segment group {min(missing)} was not rewritten"
    resolved = sum(verdict.superseded + verdict.expired for verdict in verdicts)
    dropped = sum(piece.dropped for piece in rewritten)
    fingerprints = sum(verdict.dropped_fingerprints for verdict in verdicts)
    fingerprints -= sum(piece.dropped_fingerprints for piece in rewritten)
    if resolved != dropped or fingerprints % FINGERPRINT_RANGE:
        return f"records that were to go: {resolved}; that went: {dropped}, or others"
    return None


def _is_planned(plan: LogPlan, group: int, segment: int) -> bool:
    return 0 <= group < len(plan.groups) and 0 <= segment < len(plan.groups[group].segments)
