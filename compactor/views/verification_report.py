"""The view of `verify`: its numbers and findings, and the comparison with a copy from before."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from compactor.host.printable import counted, iso_time, printable, size_text
from compactor.host.shell_commands import named
from compactor.outcome.json_values import IN_SUMMARY, MAY_LACK, written
from compactor.reason_codes import ReasonCode
from compactor.verification.evidence import CleaningClock, Soundness
from compactor.verification.proof import REASONS, TRUNCATED
from compactor.verification.verify import Verification
from compactor.verification.verify_against import Compared, Comparison
from compactor.views.fitting_table import Column, table_lines, whole_words


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationTotalsDocument:
    partitions: int
    segments: int
    batches: int
    records: int
    log_bytes: int
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonDocument:
    """A log directory held against a copy from before, in numbers."""

    before: str
    as_of_ms: int | None
    as_of: str
    as_of_is_clock_of_cleaning: bool
    partitions: int
    untouched_partitions: int
    unmatched_partitions: int
    partitions_sharing_files: int
    keys: int
    records_before: int
    records_after: int
    gone: dict[str, int]
    soundness: dict[Soundness, int]
    findings: int


class FindingDocument(NamedTuple):
    """Something that is not as it should be."""

    path: str
    position: int | None
    problem: str
    reason_code: ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationDocument:
    """A verification."""

    totals: VerificationTotalsDocument = field(metadata=IN_SUMMARY)
    notices: Sequence[str] = field(metadata=IN_SUMMARY)
    against: ComparisonDocument | None = field(metadata=written(is_in_summary=True, may_lack=True))
    findings: list[FindingDocument]
    partitions: Sequence[Compared] | None = field(metadata=MAY_LACK)


def verification_document(
    verification: Verification, comparison: Comparison | None = None
) -> VerificationDocument:
    """Return the fields that follow those of the summary."""
    totals = VerificationTotalsDocument(
        partitions=verification.partitions,
        segments=verification.segments,
        batches=verification.batches,
        records=verification.records,
        log_bytes=verification.log_bytes,
        findings=len(verification.findings),
    )
    findings = verification.findings + (comparison.findings if comparison else [])
    return VerificationDocument(
        totals=totals,
        notices=verification.notices,
        against=None if comparison is None else _numbers_of(comparison),
        findings=[FindingDocument(*finding) for finding in findings],
        partitions=None if comparison is None else comparison.partitions,
    )


def _numbers_of(comparison: Comparison) -> ComparisonDocument:
    held = comparison.partitions
    return ComparisonDocument(
        before=comparison.before,
        as_of_ms=comparison.clock.as_of_ms,
        as_of=iso_time(comparison.clock.as_of_ms),
        as_of_is_clock_of_cleaning=comparison.clock.is_exact,
        partitions=len(held) + comparison.untouched,
        untouched_partitions=comparison.untouched,
        unmatched_partitions=len(comparison.unmatched),
        partitions_sharing_files=comparison.linked,
        keys=sum(p.keys for p in held),
        records_before=sum(p.records_before for p in held),
        records_after=sum(p.records_after for p in held),
        gone={reason: sum(p.gone[reason] for p in held) for reason in REASONS},
        soundness=comparison.counts(),
        findings=len(comparison.findings),
    )


def verification_line(verification: Verification) -> str:
    """Return what was checked, as a line for a person."""
    parts = [
        counted(verification.partitions, "partition"),
        counted(verification.segments, "segment"),
        counted(verification.batches, "batch", "batches"),
        counted(verification.records, "record"),
        size_text(verification.log_bytes),
    ]
    what = ", ".join(parts)
    count = counted(len(verification.findings), "finding") if verification.findings else "all sound"
    return f"{what}: {count}"


SHOWN_PARTITIONS = 40
SHOWN_FINDINGS = 200
SHOWN_NAMES = 3


def comparison_view(comparison: Comparison, width: int) -> RenderableType:
    """Return what was compared, what is gone and why, and whether it holds."""
    parts: list[RenderableType] = []
    if comparison.partitions:
        parts += _lines(comparison.partitions, width)
    if len(comparison.partitions) > SHOWN_PARTITIONS:
        more = len(comparison.partitions) - SHOWN_PARTITIONS
        parts.append(Text(f"… and {more:,} more (all: --report FILE.json)", "dim"))
    findings = map(str, comparison.findings[:SHOWN_FINDINGS])
    for line in (*_notes(comparison), *findings, _summary(comparison)):
        parts += whole_words(printable(line), width)
    return Group(*parts)


def _lines(partitions: list[Compared], width: int) -> list[Text]:
    reasons = [r for r in REASONS if any(p.gone[r] for p in partitions)]
    columns = (
        Column("keys", 2),
        Column("records", 0),
        *(Column(reason.replace("_", " "), 1) for reason in reasons),
    )
    shown = partitions[:SHOWN_PARTITIONS]
    rows = [[printable(partition.name), *_cells([partition], reasons)] for partition in shown]
    if len(partitions) > 1:
        rows.append(["total", *_cells(partitions, reasons)])
    return table_lines("partition", columns, rows, width)


def _cells(partitions: list[Compared], reasons: list[str]) -> list[str]:
    before = sum(p.records_before for p in partitions)
    after = sum(p.records_after for p in partitions)
    gone = [f"{sum(p.gone[reason] for p in partitions):,}" for reason in reasons]
    return [f"{sum(p.keys for p in partitions):,}", f"{before:,} → {after:,}", *gone]


def _notes(comparison: Comparison) -> list[str]:
    notes = [_clock(comparison.clock)]
    notes += [
        f"{p.name}: the log started at offset {p.log_start_before} and starts at "
        f"{p.log_start_offset} now; what lay below was deleted ({p.log_start_shown_by} shows it)"
        for p in comparison.partitions
        if p.log_start_offset > p.log_start_before
    ]
    notes += [
        f"{p.name}: no checkpoint says how far it was cleaned; checked up to the active segment"
        for p in comparison.partitions
        if p.is_cut_short and any(p.gone.values())
    ]
    notes += [
        f"{p.name}: no report has {counted(p.unreported_moments, 'delete horizon')} that a "
        "cleaning set since: a broker's cleaner did, or a run that was killed"
        for p in comparison.partitions
        if p.unreported_moments
    ]
    notes += [
        f"{p.name}: a cleaning that no report tells of has removed tombstones or markers "
        f"({p.possible_removals:,}); the cleaner's checkpoint or a delete horizon shows one, and "
        "delete.retention.ms has passed since the copy was made"
        for p in comparison.partitions
        if p.possible_removals
    ]
    notes += [
        f"{p.name}: {named('log truncate')} deleted {counted(p.gone[TRUNCATED], 'record')} from "
        f"offset {p.appended_from or p.log_end} on (--run-report shows it)"
        for p in comparison.partitions
        if p.gone[TRUNCATED]
    ]
    if not (comparison.clock.is_exact or comparison.clock.evidence.has_reports):
        notes += [
            f"{p.name}: delete horizons of {p.horizon_moments:,} moments were set, as by a run "
            "that was interrupted and one that completed it; --run-report checks each"
            for p in comparison.partitions
            if p.horizon_moments > 1
        ]
    notes += [
        f"{p.name}: what is there from offset {p.appended_from} on was appended since"
        for p in comparison.partitions
        if p.appended_from is not None
    ]
    notes += [
        f"{p.name}: .txnindex and markers disagreed on "
        f"{counted(p.disputed_batches, 'batch', 'batches')} before the cleaning "
        "already; consumers go by .txnindex, and so does this check"
        for p in comparison.partitions
        if p.disputed_batches
    ]
    if comparison.linked:
        notes.append(
            f"{counted(comparison.linked, 'partition')} with files that the copy shares: a change "
            "inside of such a file would show on both sides"
        )
    if comparison.unmatched:
        names = ", ".join(comparison.unmatched[:SHOWN_NAMES])
        count = counted(len(comparison.unmatched), "partition")
        notes.append(f"no copy to compare with: {count} ({names})")
    return notes


def _horizons_from(clock: CleaningClock) -> int:
    return clock.as_of_ms if clock.horizons_from_ms is None else clock.horizons_from_ms


def _clock(clock: CleaningClock) -> str:
    held = f"delete horizons are checked against {iso_time(_horizons_from(clock))}"
    if clock.is_exact:
        return f"{held}, taken as the clock of the cleaning"
    return f"{held}, this machine's clock; --run-report or --as-of gives that of the cleaning"


def _summary(comparison: Comparison) -> str:
    changed = f"{counted(len(comparison.partitions), 'partition')} changed"
    held = f"against {comparison.before}: {changed}, {comparison.untouched:,} untouched"
    counts = ", ".join(f"{count:,} {soundness}" for soundness, count in comparison.counts().items())
    held += f" ({counts})"
    if comparison.findings:
        return f"{held}: {counted(len(comparison.findings), 'finding')}"
    return (
        f"{held}: every key has its latest record, all that is left is as it was, all that is gone "
        "had a reason"
    )
