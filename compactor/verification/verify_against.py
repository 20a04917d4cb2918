"""`compactor verify LOG_DIR --against BEFORE`: the reader's proof of a whole log directory.

Partition by partition; `reader_bounds` and `reader_proof` say what is checked of each. It only
reads, takes no lock, and uses nothing of what scans, resolves and rewrites: an error of those
cannot hide itself. Shared are the readers of `storage/`: names, checkpoints, snapshots, codecs.
"""

import os
import secrets
from dataclasses import dataclass, field, replace

import numpy as np

from compactor.errors import UsageError
from compactor.host.progress import AGAINST_STAGE, ProgressSink
from compactor.host.suggestions import did_you_mean
from compactor.log_checks.findings import Finding, difference
from compactor.outcome.json_values import HIDDEN, written
from compactor.verification.evidence import CleaningClock, LogClock, Soundness, accounts_for
from compactor.verification.gone_records import LogStartCheck
from compactor.verification.proof import REMOVALS
from compactor.verification.reader_bounds import (
    Checkpoints,
    bounds_of,
    check_checkpoints,
    check_epochs,
    check_offsets,
    check_untouched,
    damage,
    is_linked,
    is_untouched,
    read_checkpoints,
    read_side,
)
from compactor.verification.reader_kernels import Secret
from compactor.verification.reader_proof import PartitionProof
from storage.errors import CorruptFileError
from storage.files.local import LOCAL
from storage.formats import checkpoint
from storage.log.log_dir import LogDirListing, PartitionListing, list_log_dir


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared of one partition that was cleaned."""

    name: str = field(metadata=written(name="partition"))
    log_start_offset: int
    log_start_before: int = field(metadata=written(name="log_start_offset_before"))
    keys: int
    records_before: int
    records_after: int
    soundness: Soundness
    log_start_shown_by: str = field(metadata=written(attribute="higher_start_shown_by"))
    gone: dict[str, int]
    disputed_batches: int = field(metadata=written(name="batches_of_disputed_transactions"))
    horizon_moments: int
    unreported_moments: int
    possible_removals: int
    appended_from: int | None  # what was appended since begins there
    is_cut_short: bool = field(metadata=written(name="checkpoint_missing"))
    log_end: int = field(metadata=HIDDEN)

    @property
    def higher_start_shown_by(self) -> str | None:
        """What shows that the log may start where it does; None: it starts where it did."""
        return self.log_start_shown_by if self.log_start_offset > self.log_start_before else None


@dataclass(slots=True)
class Comparison:
    """A log directory compared with its copy from before."""

    before: str
    clock: CleaningClock
    untouched: int = 0
    linked: int = 0  # partitions that share files with their copy
    unmatched: tuple[str, ...] = ()  # partitions of which there is no copy
    partitions: list[Compared] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def counts(self) -> dict[Soundness, int]:
        """How many partitions come to what; one that is untouched is whole."""
        found = dict.fromkeys(Soundness, 0) | {Soundness.WHOLE: self.untouched}
        for partition in self.partitions:
            found[partition.soundness] += 1
        return found


def verify_against(
    log_dir: str, before: str, only: str | None, clock: CleaningClock, progress: ProgressSink
) -> Comparison:
    """Compare each partition that both have; with `only`, that one.

    Raise UsageError if `only` names none of them.
    """
    was, now = list_log_dir(before, LOCAL), list_log_dir(log_dir, LOCAL)
    old = {p.name: p for p in was.partitions if only in (None, p.name)}
    new = {p.name: p for p in now.partitions if only in (None, p.name)}
    if only is not None and only not in old:
        hint = did_you_mean(only, [partition.name for partition in was.partitions])
        raise UsageError(f"there is no such partition in {before}{hint}", "topic_partition", only)
    unmatched = tuple(sorted(new.keys() - old.keys()))
    found = Comparison(before=before, clock=clock, unmatched=unmatched)
    for name in sorted(old.keys() - new.keys()):
        found.findings.append(difference(os.path.join(log_dir, name), 0, "the partition is gone"))
    try:
        checkpoints = read_checkpoints(before), read_checkpoints(log_dir)
        if only is None:
            truncated = clock.evidence.truncated_to
            found.findings += check_checkpoints(*checkpoints, now, truncated)
    except (CorruptFileError, OSError) as error:
        found.findings.append(damage(error, log_dir))
        return found
    comparer = _Comparer(was, checkpoints, found)
    both = sorted(old.keys() & new.keys())
    progress.stage(AGAINST_STAGE, len(both))
    for done, name in enumerate(both, start=1):
        comparer.hold(old[name], new[name])
        progress.advance(done)
    return found


class _Comparer:
    def __init__(
        self,
        before: LogDirListing,
        checkpoints: tuple[Checkpoints, Checkpoints],
        comparison: Comparison,
    ) -> None:
        self._clean_shutdown = before.has_clean_shutdown
        self._checkpoints, self._clock, self._comparison = checkpoints, comparison.clock, comparison
        words = np.frombuffer(secrets.token_bytes(16), np.uint64)  # nobody forges a collision
        self._secret: Secret = words[0], words[1]

    def hold(self, old: PartitionListing, new: PartitionListing) -> None:
        """Compare one partition. Damage ends its comparison, and no other."""
        try:
            self._comparison.linked += is_linked(old, new)
            if is_untouched(old, new) and not self._has_moved(new):
                self._comparison.untouched += 1
                return
            self._hold_changed(old, new)
        except (CorruptFileError, OSError) as error:
            self._comparison.findings.append(damage(error, new.path))

    def _has_moved(self, new: PartitionListing) -> bool:
        """Whether the cleaner's checkpoint says that the log was cleaned."""
        name = new.topic, new.partition
        was, now = (entries[checkpoint.CLEANER_OFFSET].get(name) for entries in self._checkpoints)
        return was != now

    def _hold_changed(self, old: PartitionListing, new: PartitionListing) -> None:
        clock = self._clock_of(old, new)
        before, after = (
            read_side(listing, checkpoints, clock.as_of_ms, self._clean_shutdown)
            for listing, checkpoints in zip((old, new), self._checkpoints, strict=True)
        )
        bounds = bounds_of(before, after, clock.evidence)
        findings: list[Finding] = []
        findings += check_offsets(before, after, clock.as_of_ms, clock.evidence)
        findings += check_untouched(before, after, bounds)
        findings += check_epochs(before, after, bounds)
        said = self._checkpoints[1][checkpoint.LOG_START].get((new.topic, new.partition))
        log_start = LogStartCheck(before, after, said, clock)
        proof = PartitionProof((before, after), bounds, self._secret, clock, log_start).run()
        findings += proof.findings
        self._comparison.findings += findings
        self._comparison.partitions.append(
            Compared(
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
                appended_from=(
                    bounds.log_end_offset if after.log_end_offset > bounds.log_end_offset else None
                ),
                log_end=after.log_end_offset,
                is_cut_short=bounds.is_cut_short,
                soundness=_soundness(findings, proof.gone),
                log_start_shown_by=log_start.shown_by,
            )
        )

    def _clock_of(self, old: PartitionListing, new: PartitionListing) -> LogClock:
        """What is known of the cleanings of one log, of which its checkpoints tell, too."""
        clock = self._clock.of(new.topic, new.partition)
        key = new.topic, new.partition
        was, now = (entries[checkpoint.CLEANER_OFFSET].get(key) for entries in self._checkpoints)
        start = max(
            self._checkpoints[1][checkpoint.LOG_START].get(key, 0),
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
