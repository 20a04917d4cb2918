"""Compare one partition with its copy, in a task or in the driver's process.

`reader_bounds` and `reader_proof` say what is checked. The task reads both directories itself, and
draws the key of its hashes, which no other process gets to know.
"""

import secrets
from dataclasses import replace
from typing import Any

import numpy as np

from cleaner_jobs.messages import value_of
from cleaner_jobs.tasks.mapping import MapContext
from compactor.log_checks.findings import Finding
from compactor.verification.evidence import LogClock, Soundness, accounts_for
from compactor.verification.gone_records import LogStartCheck
from compactor.verification.proof import REMOVALS
from compactor.verification.reader_bounds import (
    Checkpoints,
    bounds_of,
    check_epochs,
    check_offsets,
    check_untouched,
    damage,
    is_linked,
    is_untouched,
    read_side,
)
from compactor.verification.reader_kernels import Secret
from compactor.verification.reader_proof import PartitionProof
from compactor.verification.verify_against import Compared, PartitionComparison, PartitionPair
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.log.log_dir import PartitionListing, list_partition


def compare_partition(value: Any, _: MapContext) -> PartitionComparison:
    """Compare a `PartitionPair`, as JSON has it. Damage ends the comparison, and is a finding."""
    pair = value_of(PartitionPair, value)
    found = PartitionComparison()
    try:
        old, new = (
            list_partition(path, pair.topic, pair.partition, LOCAL)
            for path in (pair.before, pair.after)
        )
        found = found._replace(is_linked=is_linked(old, new))
        if is_untouched(old, new) and not _has_moved(pair):
            return found._replace(is_untouched=True)
        compared, findings = _compared(pair, old, new)
    except (CorruptFileError, OSError) as error:
        return found._replace(findings=(damage(error, pair.after),))
    return found._replace(compared=compared, findings=tuple(findings))


def _has_moved(pair: PartitionPair) -> bool:
    """Whether the cleaner's checkpoint says that the log was cleaned."""
    was, now = (entries[checkpoint.CLEANER_OFFSET] for entries in pair.checkpoints)
    return was != now


def _compared(
    pair: PartitionPair, old: PartitionListing, new: PartitionListing
) -> tuple[Compared, list[Finding]]:
    clock, checkpoints = _clock_of(pair, old, new), _checkpoints_of(pair)
    before, after = (
        read_side(listing, of_side, clock.as_of_ms, pair.has_clean_shutdown)
        for listing, of_side in zip((old, new), checkpoints, strict=True)
    )
    bounds = bounds_of(before, after, clock.evidence)
    findings: list[Finding] = []
    findings += check_offsets(before, after, clock.as_of_ms, clock.evidence)
    findings += check_untouched(before, after, bounds)
    findings += check_epochs(before, after, bounds)
    log_start = LogStartCheck(before, after, pair.checkpoints[1][checkpoint.LOG_START], clock)
    proof = PartitionProof((before, after), bounds, _new_secret(), clock, log_start).run()
    findings += proof.findings
    is_longer = after.log_end_offset > bounds.log_end_offset
    compared = Compared(
        name=new.name,
        log_start_offset=after.log_start_offset,
        log_start_before=before.log_start_offset,
        records_before=proof.records_before,
        records_after=proof.records_after,
        keys=proof.keys,
        gone=proof.gone,
        disputed_batches=proof.disputed_batches,
        horizon_moments=proof.horizon_moments,
        unreported_moments=proof.unreported_moments,
        possible_removals=proof.possible_removals,
        appended_from=bounds.log_end_offset if is_longer else None,
        log_end=after.log_end_offset,
        is_cut_short=bounds.is_cut_short,
        soundness=_soundness(findings, proof.gone),
        log_start_shown_by=log_start.shown_by,
    )
    return compared, findings


def _new_secret() -> Secret:
    """Return a key for hashes that nobody can guess: nobody forges a collision."""
    words = np.frombuffer(secrets.token_bytes(16), np.uint64)
    return words[0], words[1]


def _checkpoints_of(pair: PartitionPair) -> list[Checkpoints]:
    key = pair.topic, pair.partition
    return [
        {name: {} if offset is None else {key: offset} for name, offset in entries.items()}
        for entries in pair.checkpoints
    ]


def _clock_of(pair: PartitionPair, old: PartitionListing, new: PartitionListing) -> LogClock:
    """Add to what is known of the cleanings of a log what its checkpoints and its copy tell."""
    clock = pair.clock
    was, now = (entries[checkpoint.CLEANER_OFFSET] for entries in pair.checkpoints)
    start = max(
        pair.checkpoints[1][checkpoint.LOG_START] or 0,
        *(s.base_offset for s in new.segments[:1]),
        0,
    )
    rounds = clock.evidence.complete
    evidence = replace(
        clock.evidence.of_copy_written(max((s.log_mtime_ns for s in old.segments), default=0)),
        is_accounted_for=accounts_for(rounds, was, now, start),
    )
    if evidence.reported.truncated_to is not None:  # which lowers the checkpoint
        evidence = replace(evidence, is_accounted_for=False)
    if evidence.has_reports:
        clock = clock._replace(as_of_ms=evidence.latest_ms, is_exact=bool(evidence.rounds))
    return clock._replace(evidence=evidence)


def _soundness(findings: list[Finding], gone: dict[str, int]) -> Soundness:
    if findings:
        return Soundness.UNEXPLAINED
    return Soundness.REMOVED if any(gone[reason] for reason in REMOVALS) else Soundness.WHOLE
